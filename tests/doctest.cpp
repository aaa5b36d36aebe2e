// The implementation of doctest. It is compiled once for all test programs, because this takes as long as
// compiling a dozen test files.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
