#include "data/text/token_options.h"

#include <fmt/format.h>

namespace dtrain {

void check_token_options(const TokenOptions& options, const ConfigNode& node, Diagnostics& diagnostics) {
  const ConfigNode* written = node.find("vocabulary");
  const ConfigNode& place = written ? *written : node;
  const bool is_bytes = options.tokens == TokenKind::bytes, is_words = options.tokens == TokenKind::words;
  const int64_t least = is_words ? kFirstWord + 1 : kByteTokens + 1;
  if (is_bytes && options.vocabulary)
    diagnostics.error(place,
                      "vocabulary: bytes always have 256 tokens; leave the option out, or set 'tokens' "
                      "to words or bpe");
  else if (!is_bytes && !options.vocabulary)
    diagnostics.error(place, fmt::format("tokens: {} need a vocabulary size; set 'vocabulary' to the maximum "
                                         "number of different tokens, for example 8192",
                                         is_words ? "words" : "bpe tokens"));
  else if (!is_bytes && *options.vocabulary < least)
    diagnostics.error(place, fmt::format("vocabulary: expected at least {} ({}), found {}", least,
                                         is_words ? "padding, unknown words and one word"
                                                  : "the 256 bytes and one sequence of bytes",
                                         *options.vocabulary));
  if (options.standardize && !is_words)
    diagnostics.error(node,
                      "standardize: this option applies only to `tokens: words`, because bytes and bpe do "
                      "not change the text; remove this option");
}

}  // namespace dtrain
