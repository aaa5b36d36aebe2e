#include "device/cpu/denormals.h"

#include <xmmintrin.h>

namespace dtrain::cpu {

unsigned flush_denormals() {
  constexpr unsigned kDenormalsAreZero = 1u << 6, kFlushToZero = 1u << 15;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kDenormalsAreZero | kFlushToZero);
  return before;
}

void restore_denormals(unsigned before) {
  _mm_setcsr(before);
}

}  // namespace dtrain::cpu
