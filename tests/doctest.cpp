// doctest itself: once for all test programs, since it takes as long to compile as a dozen of them.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
