#include "generate/generate_texts.h"

#include <algorithm>
#include <limits>

#include "generate/stop_texts.h"

namespace dtrain {

namespace {

/// A text that is being generated.
class Continuation {
 public:
  /// The tokens of the prompt are also added to the stream that converts tokens to text. The stream then
  /// begins the generated text with a space if a space must separate it from the prompt.
  Continuation(const LanguageModel& model, const std::vector<int32_t>& prompt, const GenerateOptions& options,
               GeneratedText& text)
      : stream_(model.tokenizer), stops_(options.stops), most_(options.max_tokens), text_(text) {
    for (const int32_t id : prompt) stream_.add(id);
  }

  bool has_ended() const { return has_ended_; }
  TokenPlace place() const {
    return {static_cast<uint32_t>(text_.prompt), static_cast<uint32_t>(text_.sample), text_.tokens.size()};
  }

  /// Adds a token. Returns the additional text that can be printed now. The end of the text is held back
  /// while it may be an incomplete character or the beginning of a stop text.
  std::string add(int32_t id) {
    text_.tokens.push_back(id);
    std::string part = stops_.add(stream_.add(id));
    const bool is_last = static_cast<int64_t>(text_.tokens.size()) == most_;
    if (is_last && !stops_.found()) part += stops_.add(stream_.finish());
    if (stops_.found()) text_.end = TextEnd::stop;
    has_ended_ = is_last || stops_.found();
    if (has_ended_) part += stops_.finish();
    text_.text += part;
    return part;
  }

 private:
  TokenStream stream_;
  StopTexts stops_;
  int64_t most_;
  GeneratedText& text_;
  bool has_ended_ = false;
};

/// Returns the scores of one position, indexed by token id, for the ids of the vocabulary. If tokens are
/// words, the scores are copied to `memory`, and the score of the padding token is set to -inf in the copy,
/// so that this token is never drawn.
std::span<const float> drawable(const LanguageModel& model, std::span<const float> scores,
                                std::vector<float>& memory) {
  scores = scores.first(static_cast<size_t>(model.tokenizer->size()));
  if (model.tokenizer->learned().kind != TokenKind::words) return scores;
  memory.assign(scores.begin(), scores.end());
  memory[kPaddingToken] = -std::numeric_limits<float>::infinity();
  return memory;
}

/// Generates the texts with the indices [first, first + texts.size()). If there are fewer texts than batch
/// rows, the other rows are copies of the last text. Returns false if the observer has stopped the
/// generation.
bool generate_batch(const LanguageModel& model, NextToken& next,
                    std::span<const std::vector<int32_t>> prompts, const GenerateOptions& options,
                    size_t first, std::span<GeneratedText> texts, int64_t at_once, TextObserver& observer) {
  Sampler sampler(options.sampling);
  std::vector<std::vector<int32_t>> tokens;
  std::vector<Continuation> continuations;
  for (GeneratedText& text : texts) {
    tokens.push_back(prompts[text.prompt]);
    continuations.emplace_back(model, prompts[text.prompt], options, text);
  }
  tokens.resize(static_cast<size_t>(at_once), tokens.back());
  next.begin();
  std::vector<float> memory;
  const auto columns = static_cast<size_t>(model.columns);
  const auto has_ended = [](const Continuation& text) { return text.has_ended(); };
  while (!std::all_of(continuations.begin(), continuations.end(), has_ended)) {
    if (!observer.goes_on()) return false;
    const std::span<const float> scores = next.scores(tokens);
    for (size_t i = 0; i < texts.size(); ++i) {
      Continuation& text = continuations[i];
      if (text.has_ended()) continue;
      const int32_t id =
          sampler.draw(drawable(model, scores.subspan(i * columns, columns), memory), text.place());
      tokens[i].push_back(id);
      observer.add(first + i, text.add(id));
      if (text.has_ended()) observer.end(first + i);
    }
  }
  return true;
}

}  // namespace

std::vector<GeneratedText> generate_texts(const LanguageModel& model, NextToken& next,
                                          std::span<const std::vector<int32_t>> prompts,
                                          const GenerateOptions& options, int64_t at_once,
                                          TextObserver& observer) {
  std::vector<GeneratedText> texts;
  for (size_t prompt = 0; prompt < prompts.size(); ++prompt)
    for (int64_t sample = 0; sample < options.samples; ++sample)
      texts.push_back({.prompt = prompt, .sample = sample});
  const auto most = static_cast<size_t>(at_once);
  for (size_t first = 0; first < texts.size(); first += most) {
    const std::span<GeneratedText> batch =
        std::span(texts).subspan(first, std::min(most, texts.size() - first));
    if (!generate_batch(model, next, prompts, options, first, batch, at_once, observer)) break;
  }
  return texts;
}

}  // namespace dtrain
