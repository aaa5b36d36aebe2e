// Fallback for CPUs without a flush-to-zero implementation: denormal numbers are kept.
#include "device/cpu/denormals.h"

namespace dtrain::cpu {

unsigned flush_denormals() {
  return 0;
}
void restore_denormals(unsigned) {}

}  // namespace dtrain::cpu
