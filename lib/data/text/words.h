// Words: text between whitespace, standardized as in Keras's TextVectorization.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/text/tokenizer.h"

namespace dtrain {

/// Calls `visit` for each word, in order. Words are separated by ASCII whitespace; `visit` must copy the word
/// to keep it.
void for_each_word(std::string_view text, TextStandardization standardize,
                   const std::function<void(std::string_view word)>& visit);

/// Returns a tokenizer for the vocabulary `learned`. Id 0 is padding, id 1 is any unknown word, and ids from
/// 2 are the words of `learned`.
std::shared_ptr<const Tokenizer> word_tokenizer(const LearnedTokens& learned);

}  // namespace dtrain
