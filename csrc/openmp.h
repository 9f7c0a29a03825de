// The OpenMP threads of a framework, when its libraries have them in this process.
//
// After an operator of PyTorch its threads spin for some milliseconds, in case another loop follows. A loop
// on other threads would share their CPUs with them. So while they spin, loops of kernels run on these
// threads. Sleeping ones are left alone: a team of OpenMP waits for its last thread, while polyop's own owner
// runs the shares of workers that are late. polyop does not link OpenMP: it takes the functions from the
// framework's library.
#pragma once

#include <cstdint>

namespace polyop {

// Takes the OpenMP functions that a library uses, by its handle of dlopen. Without such functions, or with
// POLYOP_OPENMP=0, nothing changes.
void take_openmp(void* library);

// Runs work(context, 0, n) .. work(context, n - 1, n), each on one of the runtime's n threads; the first on
// the calling one. Returns false, and runs nothing, where they must not or should not be entered: there is no
// runtime, its threads sleep, this thread is in an OpenMP region already, it allows fewer than `wanted`
// threads, or this process is the child of a fork(), where libgomp hangs.
bool run_on_openmp(void (*work)(void* context, int thread, int threads), void* context, int wanted);

// The number of loops that ran so in this process.
int64_t openmp_loops();

// For the child of a fork(): only stores.
void forget_openmp();

}  // namespace polyop
