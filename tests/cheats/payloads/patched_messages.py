"""Runs in the interpreter that loads head: halves head's times in whatever the worker sends to its parent.

Wins where the parent believes what a process says in which head lives. It needs nothing but `Leader` of
bench/system/worker.py: which samples are head's stands in the questions, or in the answers themselves.
"""

import json

from kernelgate.bench.system.worker import Leader

sides: list[str] = []
real_send, real_receive = Leader.send, Leader.receive


def asked(value):
    """The sides in a question, in order."""
    if isinstance(value, dict):
        own = [value["side"]] if isinstance(value.get("side"), str) else []
        return own + [side for one in value.values() for side in asked(one)]
    return [side for one in value for side in asked(one)] if isinstance(value, list) else []


def numbers(value):
    return isinstance(value, list) and value and all(isinstance(one, int | float) for one in value)


def better(value):
    if isinstance(value, list):
        return [better(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {}
    for name, one in value.items():
        if name == "head" and numbers(one):
            made[name] = [number / 2 for number in one]
        elif name == "times_us" and numbers(one) and len(one) == len(sides):
            made[name] = [number / 2 if side == "head" else number for number, side in zip(one, sides, strict=True)]
        else:
            made[name] = better(one)
    return made


def send(self, message):
    told = json.loads(message.model_dump_json(by_alias=True))
    real_send(self, type(message).model_validate(better(told)))


def receive(self, kind):
    question = real_receive(self, kind)
    found = asked(json.loads(question.model_dump_json()))
    if found:
        sides[:] = found
    return question


Leader.send, Leader.receive = send, receive
