import os

from setuptools import find_packages, setup

from polyop.wheel import BuildExtension, OperatorExtension

USE_NINJA = os.getenv("USE_NINJA") == "1"
exts = []
ext1 = OperatorExtension(
    name="custom_ops_lib",
    sources=["./csrc/extension_add.cpp", "./csrc/extension_add1.cpp", "./csrc/register.cpp"],
    names={"add_custom": "my_op"},  # what Python calls it
    docs={"add_custom": "x + y"},
)
exts.append(ext1)

setup(
    name="custom_ops",
    version="1.0",
    keywords="custom_ops",
    ext_modules=exts,
    packages=find_packages(include=["custom_ops"]),
    package_data={"custom_ops": ["custom_reg_op.h"]},
    install_requires=["polyop"],
    cmdclass={"build_ext": BuildExtension.with_options(use_ninja=USE_NINJA)},
)
