from my_kernels import swiglu

__all__ = ["swiglu"]
