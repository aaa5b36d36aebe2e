// Checks that a run is a language model, and encodes prompts for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "run/run_config.h"

namespace dtrain {

/// A model that predicts the next token for each position of a window of tokens: its tokenizer, and the
/// shapes of its input and output.
struct LanguageModel {
  std::shared_ptr<const Tokenizer> tokenizer;
  int64_t positions = 0;             // number of tokens in a window
  int64_t columns = 0;               // number of scores per position: at least one for each id
  bool gives_probabilities = false;  // whether the scores are probabilities; otherwise logits
};

/// Returns the language model of a saved run. Throws UserError if the run has no tokenizer, or if its model
/// does not have exactly one input (int32, [positions]) and one output ([positions, ids]).
LanguageModel language_model_of(const RunConfig& config);

/// Returns the tokens of a prompt. Throws UserError if the prompt has no tokens, or if it contains unknown
/// words or bytes that are not UTF-8. `name`: the name of the prompt for error messages.
std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, const std::string& text,
                                   const std::string& name);

/// Returns the index of the first token of the window from which the next token of a text with `tokens`
/// tokens is predicted. Whenever a text becomes longer than the window, the window moves forward by half of
/// its length.
int64_t window_begin(int64_t tokens, int64_t positions);

}  // namespace dtrain
