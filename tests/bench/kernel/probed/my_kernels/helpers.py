import triton
import triton.language as tl


@triton.jit
def deep(x):
    y = deeper(x)
    return y


@triton.jit
def deeper(x):
    return tl.no_such_function(x)  # fault: nested
