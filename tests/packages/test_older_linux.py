"""tools/older_linux.py: what is linked with its flags needs old versions alone, and works."""

import os
import pathlib
import re
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))

import older_linux

COMPILER = os.environ.get("CXX", "c++")
# Each of the functions that older_linux.cc has, and functions that have an older version.
PROGRAM = r"""
#include <condition_variable>
#include <cstdio>
#include <dlfcn.h>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

static int alive = 0;

struct Counted : std::runtime_error {
  Counted() : std::runtime_error("counted") { ++alive; }
  Counted(const Counted& other) : std::runtime_error(other) { ++alive; }
  ~Counted() override { --alive; }
};

static void copied() {
  std::exception_ptr first;
  try {
    throw Counted();
  } catch (...) {
    first = std::current_exception();
  }
  std::exception_ptr second = first, third = second;
  first = nullptr;
  second = nullptr;
  try {
    std::rethrow_exception(third);
  } catch (const std::exception& error) {
    std::printf("%s %d\n", error.what(), alive);
  }
}

extern "C" void run(void (*kernel)(), size_t count) {
  copied();
  std::printf("%d alive\n", alive);
  try {
    std::allocator<std::string>().allocate(count);
  } catch (const std::bad_array_new_length&) {
    std::printf("too long\n");
  }
  std::mutex mutex;
  std::condition_variable ready;
  bool done = false;
  std::thread other([&] {
    std::lock_guard<std::mutex> lock(mutex);
    done = true;
    ready.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  ready.wait(lock, [&] { return done; });
  lock.unlock();
  other.join();
  auto shared = std::make_shared<int>(7);
  auto again = shared;
  std::printf("%ld owners\n", shared.use_count());
  std::printf("%s\n", dlsym(RTLD_DEFAULT, "malloc") ? "found" : "lost");
  try {
    kernel();
  } catch (const std::exception& error) {
    std::printf("caught %s\n", error.what());
  }
  std::fflush(stdout);
}
"""
# A kernel is another library, which is linked for this machine.
KERNEL = '#include <stdexcept>\nextern "C" void kernel() { throw std::out_of_range("from the kernel"); }'
CALL = """
import ctypes, sys
library, kernel = map(ctypes.CDLL, sys.argv[1:])
library.run(kernel.kernel, ctypes.c_size_t(2**62))
"""
TOO_NEW = '#include <cstdlib>\nextern "C" unsigned draw() { return arc4random(); }'  # in glibc since 2.36


@pytest.fixture(scope="session")
def flags(tmp_path_factory):
    made = older_linux.flags(COMPILER, tmp_path_factory.mktemp("older"))
    if not made:
        pytest.skip("not run: this system is an older one itself")
    return made


def library(folder, name, text, *flags):
    path = folder / f"{name}.so"
    path.with_suffix(".cc").write_text(text)
    command = [COMPILER, "-std=c++17", "-O2", "-fPIC", "-shared", *flags, path.with_suffix(".cc"), "-o", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return path


def too_new(path):
    """Return the versions that a library needs and older systems lack."""
    text = older_linux.call("readelf", "--version-info", "--wide", path)
    needed = {
        (name, tuple(map(int, v.split(".")))) for name, v in re.findall(r"Name: ([A-Z]+)_([\d.]+)", text)
    }
    return {(name, v) for name, v in needed if name in older_linux.NEWEST and v > older_linux.NEWEST[name]}


@pytest.mark.parametrize("more", [(), ("-flto",)], ids=["", "lto"])
def test_old_versions_and_the_same_behaviour(flags, more, tmp_path):
    old = library(tmp_path, "old", PROGRAM, *flags, *more)
    new = library(tmp_path, "new", PROGRAM, *more)
    assert too_new(new) and not too_new(old)
    assert older_linux.missing(old) == []
    kernel = library(tmp_path, "kernel", KERNEL)
    printed = [
        subprocess.run(
            [sys.executable, "-c", CALL, path, kernel], check=True, capture_output=True, text=True
        ).stdout
        for path in (old, new)
    ]
    assert printed[0] == printed[1]
    assert printed[0].split("\n") == [
        "counted 1", "0 alive", "too long", "2 owners", "found", "caught from the kernel", "",
    ]  # fmt: skip


def test_a_function_that_older_systems_lack_is_named(flags, tmp_path):
    assert older_linux.missing(library(tmp_path, "draw", TOO_NEW, *flags)) == ["arc4random"]
