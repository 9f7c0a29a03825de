from setuptools import setup

# [setup]
from polyop.wheel import BuildExtension, LoopExtension

setup(
    ext_modules=[
        LoopExtension(
            "loopops.kernels",  # the module
            {
                "softmax": "T[:,:]",
                "softmax_gradient": "T[:,:], T[:,:]",
                "scale": "T[:], float",
            },
            dtypes=["float32", "float64"],  # what T stands for
            gradients=["scale"],  # derived; that of softmax is written by hand
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
# [/setup]
