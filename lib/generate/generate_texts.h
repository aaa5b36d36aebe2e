// Continues prompts with the tokens that a language model predicts.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generate/language_model.h"
#include "generate/next_token.h"
#include "generate/sampler.h"

namespace dtrain {

struct GenerateOptions {
  SamplingOptions sampling;
  int64_t max_tokens = 200;  // maximum number of tokens in a text, without the prompt
  int64_t samples = 1;       // texts for each prompt
  // Stop texts: a text ends before the first stop text that it contains; no stop text is empty.
  std::vector<std::string> stops = {};
};

enum class TextEnd { max_tokens, stop };

/// A generated text, without its prompt.
struct GeneratedText {
  size_t prompt = 0;                 // index
  int64_t sample = 0;                // number of this text among the texts for the same prompt, from 0
  std::string text = {};             // generated text (UTF-8), without the stop text
  std::vector<int32_t> tokens = {};  // tokens of the text, including the tokens of the stop text
  TextEnd end = TextEnd::max_tokens;
};

/// Receives the texts while they are generated. Texts are numbered from 0: first the samples for the first
/// prompt, then the samples for the second prompt, and so on.
class TextObserver {
 public:
  virtual ~TextObserver() = default;
  /// Called before the next tokens of a batch are computed. Returns false to stop the generation of all
  /// texts.
  virtual bool goes_on() = 0;
  /// Appends a part, which may be empty, to a text.
  virtual void add(size_t text, std::string_view part) = 0;
  /// Called once for each text, after its last part.
  virtual void end(size_t text) = 0;
};

/// Generates options.samples texts for each prompt. A prompt is a list of at least one token id. The texts
/// are generated in batches of `at_once` texts, and `next` must have been created for this number of texts. A
/// text depends only on the scores for its own tokens, on the options, and on the indices of its prompt and
/// sample, but not on the other texts. Returns the texts in the order of their numbers. If the observer stops
/// the generation, the texts are incomplete.
std::vector<GeneratedText> generate_texts(const LanguageModel& model, NextToken& next,
                                          std::span<const std::vector<int32_t>> prompts,
                                          const GenerateOptions& options, int64_t at_once,
                                          TextObserver& observer);

}  // namespace dtrain
