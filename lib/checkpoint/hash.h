// The checksum of checkpoint files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// The bytes of a file in order, as a list of pieces that may be anywhere in memory.
using Parts = std::span<const std::span<const std::byte>>;

/// Computes a 64-bit checksum at memory speed. It detects damage, but not forgery. The bytes are read as
/// words of 8 bytes. Word i is mixed into lane i mod 8 by xor, shift, multiplication and rotation; each of
/// these operations is a bijection of both the lane and the word. At the end, the lanes are mixed into the
/// result in the same way. Therefore, a change within a single word, such as flipped bits of one byte, always
/// changes the result. Other changes go undetected with a probability of about 2^-64. The result does not
/// depend on how the bytes are split into parts.
uint64_t checksum(Parts parts);

}  // namespace dtrain
