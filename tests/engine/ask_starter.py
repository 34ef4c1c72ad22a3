"""Has starter.py run a program, with this process's own folder, variables and standard streams, and ends as it does:

python -I -S ask_starter.py NAME (FILE | -m MODULE) [WORD …]
"""

import marshal
import os
import socket
import sys

with socket.socket(socket.AF_UNIX) as starter:
    starter.connect(f"\0{sys.argv[1]}")
    socket.send_fds(starter, [b"!"], [0, 1, 2])
    starter.sendall(marshal.dumps((sys.argv[2:], os.getcwd(), dict(os.environ))))  # noqa: PTH109 (pathlib takes longer)
    starter.shutdown(socket.SHUT_WR)
    code = int(starter.makefile().readline())
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
