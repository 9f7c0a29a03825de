// std::function, and the algorithms that sources use without including them. The includes are libstdc++'s
// internal parts of <functional> and <algorithm>: the whole headers also bring hash tables and parallel
// algorithms, a quarter of the compile time of all headers.
#ifndef POLYOP_MODULE_STD_H
#define POLYOP_MODULE_STD_H

#include <memory>

#if defined(__GLIBCXX__) && __has_include(<bits/std_function.h>) && __has_include(<bits/stl_algo.h>)
#include <bits/std_function.h>
#include <bits/stl_algo.h>
#else
#include <algorithm>
#include <functional>
#endif

#endif
