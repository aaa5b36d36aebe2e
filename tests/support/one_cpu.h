// Makes DEVICE_TEST_CASE run on one CPU device with one thread, for tests that do not depend on the number of
// threads or the instruction set.
#pragma once

#include "support/devices.h"

namespace dtrain::test {

template <class Use>
void on_every_cpu(Use&& use) {
  use(*cpu_device());
}

}  // namespace dtrain::test
