// The OpenMP threads of a framework, when its libraries have them in this process.
//
// After an operator of PyTorch its threads spin for some milliseconds, in case another loop follows. A loop on
// other threads would share their CPUs with them. So loops of kernels run on these threads too. polyop does not
// link OpenMP and starts no runtime of it: it takes the functions from the framework's library.
#pragma once

namespace polyop {

// Takes the OpenMP functions that a library uses, by its handle of dlopen. Without such functions, or with
// POLYOP_OPENMP=0, nothing changes.
void take_openmp(void* library);

// Runs work(context, 0) .. work(context, threads - 1), each on one thread; the first on the calling one.
// `threads` is what the runtime gives, at least 1. Returns false, and runs nothing, where its threads must not be
// entered: it was not found, this thread is in an OpenMP region already, it allows fewer than `wanted` threads,
// or this process is the child of a fork(), where libgomp hangs.
bool run_on_openmp(void (*work)(void* context, int thread, int threads), void* context, int wanted);

// For the child of a fork(): only stores.
void forget_openmp();

}  // namespace polyop
