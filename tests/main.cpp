#include <doctest/doctest.h>

#ifdef DTRAIN_TEST_DEVICE
#include "support/gpu.h"
#endif

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
#ifdef DTRAIN_TEST_DEVICE
  if (!dtrain::test::settle_gpu_cases(context)) return 1;
#endif
  return context.run();
}
