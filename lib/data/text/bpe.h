// Byte pair encoding. The first tokens are the 256 bytes; then the most frequent pairs of tokens are merged
// into new tokens.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "data/text/tokenizer.h"

namespace dtrain {

/// Maximum number of bytes of a piece, and therefore of a token.
inline constexpr size_t kMostPieceBytes = 64;

/// Divides a text into pieces. Together, the pieces make up the whole text, and no token crosses the border
/// between two pieces. A piece is a run of letters, a run of digits, a run of other characters, or a run of
/// whitespace. But if a run of whitespace ends with a space and another run follows, this last space belongs
/// to the piece of the following run. Letters are a to z, A to Z and all characters that are not ASCII;
/// digits are 0 to 9; whitespace is ASCII. A run of more than 64 bytes is divided into pieces of at most 64
/// bytes, but a character is never divided.
void for_each_piece(std::string_view text, const std::function<void(std::string_view piece)>& visit);

/// Returns a text that consists of this byte. The text is in static memory.
std::string_view byte_piece(unsigned char byte);

/// Returns a tokenizer for the vocabulary `learned`. Ids 0 to 255 are the bytes, and ids from 256 are the
/// merged tokens. Throws UserError for a token of more than 64 bytes.
std::shared_ptr<const Tokenizer> bpe_tokenizer(const LearnedTokens& learned);

}  // namespace dtrain
