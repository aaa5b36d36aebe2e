#include "generate/language_model.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "data/text/make_tokenizer.h"
#include "data/text/words.h"

namespace dtrain {

namespace {

constexpr std::string_view kNeeds =
    "`dtrain generate` needs a language model, trained with `dataset.train: {text: {file: ..., "
    "sequence_length: n}}`";

[[noreturn]] void refuse(const std::string& why) {
  throw UserError(fmt::format("{}; {}", why, kNeeds));
}

std::string describe(const TensorSpec& spec) {
  return fmt::format("{} of {}", name_of(spec.dtype), spec.shape.str());
}

/// Returns whether the output values are probabilities. The loss determines this. Without a loss, or if
/// the loss accepts all numbers, they are probabilities if the last layer is a softmax.
bool are_probabilities(const RunConfig& config) {
  const Scores scores = config.heads[0].scores();
  if (scores != Scores::any) return scores == Scores::probabilities;
  return config.graph.nodes[static_cast<size_t>(config.graph.outputs[0].node)].layer->is_softmax();
}

}  // namespace

LanguageModel language_model_of(const RunConfig& config) {
  const Graph& graph = config.graph;
  if (config.dataset.facts.source.tokens.empty())
    refuse("the run has no tokenizer, because it was not trained on text");
  LanguageModel model{.tokenizer = tokenizer_of(config.dataset.facts)};
  const std::vector<TensorSpec> inputs = graph.input_specs();
  if (inputs.size() != 1)
    refuse(fmt::format("the model has {} inputs; expected a single input, for the tokens", inputs.size()));
  if (inputs[0].dtype != DType::int32 || inputs[0].shape.rank() != 1)
    refuse(
        fmt::format("the input '{}' must be int32 with one axis (the positions of the tokens), but it is {}",
                    inputs[0].name, describe(inputs[0])));
  model.positions = inputs[0].shape[0];
  if (graph.outputs.size() != 1)
    refuse(fmt::format("the model has {} outputs; expected a single output", graph.outputs.size()));
  const TensorSpec& output = graph.spec(graph.outputs[0]);
  const int64_t ids = model.tokenizer->size();
  const bool fits = output.dtype == DType::float32 && output.shape.rank() == 2 &&
                    output.shape[0] == model.positions && output.shape[1] >= ids;
  if (!fits)
    refuse(fmt::format(
        "the output '{}' must be float32 with {} rows (the positions) and at least {} columns (a score "
        "for each token), but it is {}",
        graph.value_name(graph.outputs[0]), model.positions, ids, describe(output)));
  model.columns = output.shape[1];
  model.gives_probabilities = are_probabilities(config);
  return model;
}

std::vector<int32_t> encode_prompt(const Tokenizer& tokenizer, const std::string& text,
                                   const std::string& name) {
  if (tokenizer.needs_utf8()) {
    if (!is_utf8(text))
      throw UserError(fmt::format(
          "{}: the text is not UTF-8, which `tokens: words` requires; convert it with `iconv -t utf-8`",
          name));
    for_each_word(text, tokenizer.learned().standardize, [&](std::string_view word) {
      const std::vector<int32_t> ids = tokenizer.encode(word);
      if (std::find(ids.begin(), ids.end(), kUnknownWord) != ids.end())
        throw UserError(fmt::format(
            "{}: the word '{}' is not in the vocabulary of the run, which has {} words. Use other words, or "
            "train with a larger vocabulary, or with `tokens: bpe`, which can represent every text",
            name, word, tokenizer.learned().words.size()));
    });
  }
  std::vector<int32_t> ids = tokenizer.encode(text);
  if (ids.empty())
    throw UserError(fmt::format("{}: the text has no tokens; give at least one {} to continue", name,
                                tokenizer.needs_utf8() ? "word" : "character"));
  return ids;
}

int64_t window_begin(int64_t tokens, int64_t positions) {
  if (tokens <= positions) return 0;
  const int64_t half = std::max<int64_t>(1, positions / 2);
  return (tokens - positions + half - 1) / half * half;
}

}  // namespace dtrain
