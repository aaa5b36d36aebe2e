// The checksum of checkpoint files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// The bytes of a file, in order, as pieces anywhere in memory.
using Parts = std::span<const std::span<const std::byte>>;

/// Computes a 64-bit checksum against damage (not forgery) at memory speed. Word i of 8 bytes is mixed into
/// lane i mod 8 by xor, shift, multiplication and rotation, each a bijection of both lane and word; the lanes
/// are mixed into the result in the same way. A change within one word, such as flipped bits of a byte,
/// therefore always changes the result; other changes go undetected with probability of about 2^-64. The
/// result does not depend on how the bytes are split into parts.
uint64_t checksum(Parts parts);

}  // namespace dtrain
