// The implementation of doctest, compiled once for all test programs because it takes as long as a dozen of
// them.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
