// Byte pair encoding of bytes: the most frequent pairs of tokens become tokens.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "data/text/tokenizer.h"

namespace dtrain {

/// Maximum number of bytes of a piece, and therefore of a token.
inline constexpr size_t kMostPieceBytes = 64;

/// Divides a text into the pieces that tokens never cross; together they are the whole text. A piece is a run
/// of letters, of digits, or of other characters, with the space before it; or a run of whitespace, without
/// its last space if that begins the next piece. Letters are a to z, A to Z and all characters that are not
/// ASCII; digits are 0 to 9; whitespace is ASCII. A run of more than 64 bytes is divided into pieces of at
/// most 64 bytes, without dividing a character.
void for_each_piece(std::string_view text, const std::function<void(std::string_view piece)>& visit);

/// Returns the byte as a text, in static memory.
std::string_view byte_piece(unsigned char byte);

/// Returns the tokenizer of `learned`. Ids 0 to 255 are the bytes, ids from 256 the merges. Throws UserError
/// for a token of more than 64 bytes.
std::shared_ptr<const Tokenizer> bpe_tokenizer(const LearnedTokens& learned);

}  // namespace dtrain
