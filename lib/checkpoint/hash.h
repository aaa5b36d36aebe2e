// The checksum of whole checkpoints.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace dtrain {

/// A 64-bit checksum against damage (not against forgery) at the speed of memory. Word i of 8 bytes goes to
/// lane i mod 8, and each step `lane = rotate((lane ^ word) * odd)` is a bijection both of the lane and of
/// the word: a change within one word, such as any flipped bits of one byte, always changes the result; other
/// changes pass with a chance of about 2^-64.
uint64_t checksum(std::span<const std::byte> bytes);

}  // namespace dtrain
