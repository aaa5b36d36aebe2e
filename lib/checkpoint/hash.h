// The checksum of whole checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// A file's bytes in the order of the file, in pieces that lie anywhere.
using Parts = std::span<const std::span<const std::byte>>;

/// A 64-bit checksum against damage (not against forgery) at the speed of memory. Word i of 8 bytes goes to
/// lane i mod 8 by xor, shift, multiplication and rotation, each a bijection both of the lane and of the
/// word, and so do the lanes into the result: a change within one word, such as any flipped bits of one byte,
/// always changes the result; other accidents go unseen about once in 2^64. How the bytes are cut into parts
/// does not matter.
uint64_t checksum(Parts parts);

}  // namespace dtrain
