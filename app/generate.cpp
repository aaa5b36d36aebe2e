// dtrain generate: continues prompts with text of a trained language model.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "cli/console.h"
#include "cli/options.h"
#include "cli/signals.h"
#include "commands.h"
#include "data/files/memory_file.h"
#include "data/given_file.h"
#include "data/text/text_file.h"
#include "generate/decoder.h"
#include "generate/generate_texts.h"
#include "generate/step_model.h"
#include "runs/saved_model.h"
#include "train/trainer.h"

namespace dtrain {

namespace {

constexpr int64_t kMostSamples = 1'000'000;

struct GenerateCommandOptions : ModelOptions {
  OutputOptions output;
  std::vector<std::string> prompts, prompt_files;
  GenerateOptions generate;
  std::optional<int64_t> max_tokens, samples, seed, batch_size;
  bool no_cache = false;
};

std::string without_line_end(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

struct Prompt {
  std::string name;  // name of the prompt in messages
  std::string text;
};

std::string read_prompt_file(const std::string& name) {
  if (name != kStandardStream) return std::string(TextFile(name).text());
  const MemoryFile input = MemoryFile::read_from(STDIN_FILENO);
  return std::string(TextFile(input.path()).text());
}

/// Returns the prompts of --prompt, then the prompts of --prompt-file.
std::vector<Prompt> read_prompts(const GenerateCommandOptions& options) {
  if (options.prompts.empty() && options.prompt_files.empty())
    throw UserError(
        "there is no text to continue; give --prompt TEXT, or --prompt-file FILE (- is standard input)");
  std::vector<Prompt> prompts;
  for (const std::string& text : options.prompts) prompts.push_back({"--prompt", text});
  if (std::count(options.prompt_files.begin(), options.prompt_files.end(), kStandardStream) > 1)
    throw UserError("--prompt-file: standard input (-) is given more than once, but can be read only once");
  for (const std::string& name : options.prompt_files)
    prompts.push_back({name == kStandardStream ? "standard input" : name, read_prompt_file(name)});
  for (const Prompt& prompt : prompts)
    if (prompt.text.empty())
      throw UserError(
          fmt::format("{}: the text is empty; give at least one character to continue", prompt.name));
  return prompts;
}

/// Throws UserError for options out of range.
void check_generate_options(const GenerateOptions& options) {
  const SamplingOptions& sampling = options.sampling;
  if (!std::isfinite(sampling.temperature) || sampling.temperature < 0)
    throw UserError(fmt::format(
        "--temperature: expected a number of at least 0 (0 always takes the most probable token), found {}",
        sampling.temperature));
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    throw UserError(fmt::format(
        "--top-p: expected a number above 0 and at most 1 (1 allows all tokens), found {}", sampling.top_p));
  if (options.samples > kMostSamples)
    throw UserError(fmt::format("--samples: expected at most {} texts for each prompt, found {}",
                                kMostSamples, options.samples));
  for (const std::string& stop : options.stops)
    if (stop.empty())
      throw UserError(
          "--stop: the stop text is empty; give the text at which generation should stop, or omit the "
          "option");
}

/// Prints the texts with their prompts, in order, while they are generated. The parts of a text are buffered
/// until all earlier texts have ended.
class TextPrinter final : public TextObserver {
 public:
  /// `prints`: whether to print the texts.
  TextPrinter(const std::vector<Prompt>& prompts, int64_t samples, bool prints)
      : prompts_(prompts),
        samples_(static_cast<size_t>(samples)),
        prints_(prints),
        texts_(prompts.size() * samples_) {
    print_begin();
  }

  bool goes_on() override {
    if (stop_ != 0) {
      print("\n");
      throw Interrupted(stop_, "stopped");
    }
    return !is_closed_;
  }

  void add(size_t text, std::string_view part) override {
    if (text == current_)
      print(part);
    else
      texts_[text].waiting += part;
  }

  void end(size_t text) override {
    texts_[text].has_ended = true;
    while (current_ < texts_.size() && texts_[current_].has_ended) {
      print("\n");
      if (++current_ == texts_.size()) return;
      print_begin();
      print(texts_[current_].waiting);
    }
  }

 private:
  struct Text {
    std::string waiting;
    bool has_ended = false;
  };

  void print(std::string_view text) {
    if (prints_ && !text.empty() && !print_data(text)) is_closed_ = true;
  }

  void print_begin() {
    const size_t prompt = current_ / samples_;
    if (texts_.size() > 1)
      print(fmt::format("{}== prompt {}, sample {} ==\n", current_ > 0 ? "\n" : "", prompt + 1,
                        current_ % samples_ + 1));
    print(prompts_[prompt].text);
  }

  const std::atomic<int>& stop_ = catch_signals().stop;
  const std::vector<Prompt>& prompts_;
  size_t samples_;
  bool prints_;
  std::vector<Text> texts_;
  size_t current_ = 0;      // index of the text that is printed
  bool is_closed_ = false;  // the reader of the output has closed the output
};

Json cache_as_json(const SavedRun& run, const Decoder& decoder) {
  if (!decoder.why_no_cache().empty())
    return Json::object().set("used", false).set("reason", decoder.why_no_cache());
  const int64_t bytes = kept_bytes(run.config);
  return Json::object().set("used", true).set("bytes_per_text", bytes).set("bytes", bytes * decoder.texts());
}

Json texts_as_json(const std::vector<Prompt>& prompts, const std::vector<GeneratedText>& texts) {
  Json samples = Json::array();
  for (const GeneratedText& text : texts) {
    Json tokens = Json::array();
    for (const int32_t id : text.tokens) tokens.push(id);
    samples.push(Json::object()
                     .set("prompt", prompts[text.prompt].text)
                     .set("sample", text.sample)
                     .set("text", text.text)
                     .set("tokens", std::move(tokens))
                     .set("ended", text.end == TextEnd::stop ? "stop" : "max_tokens"));
  }
  return samples;
}

/// Prints which checkpoint is used. If keys and values are not cached, also prints the reason, because
/// generating is then slow.
void print_start(const SavedRun& run, const Decoder& decoder) {
  print_note(without_line_end(checkpoint_as_text(run)));
  if (!decoder.why_no_cache().empty())
    print_note(
        fmt::format("the keys and values of earlier tokens are not cached, because {}; the whole window is "
                    "computed again for each token",
                    decoder.why_no_cache()));
}

void generate(GenerateCommandOptions options, World& world) {
  GenerateOptions& generate = options.generate;
  generate.max_tokens = options.max_tokens.value_or(generate.max_tokens);
  generate.samples = options.samples.value_or(generate.samples);
  generate.sampling.seed = static_cast<uint64_t>(options.seed.value_or(0));
  check_generate_options(generate);
  const SavedRun run = load_saved_model(options);
  const LanguageModel model = language_model_of(run.config);
  const std::vector<Prompt> prompts = read_prompts(options);
  std::vector<std::vector<int32_t>> tokens;
  for (const Prompt& prompt : prompts)
    tokens.push_back(encode_prompt(*model.tokenizer, prompt.text, prompt.name));
  const int64_t most_texts = std::min(options.batch_size.value_or(run.config.train.batch_size),
                                      static_cast<int64_t>(prompts.size()) * generate.samples);
  Decoder decoder(run, model, !options.no_cache, most_texts, world);
  print_warnings(decoder.warnings());
  if (options.output.text()) print_start(run, decoder);
  TextPrinter printer(prompts, generate.samples, !options.output.json);
  const std::vector<GeneratedText> texts =
      generate_texts(model, decoder.next(), tokens, generate, decoder.texts(), printer);
  if (options.output.json)
    print_json(Json::object()
                   .set("checkpoint", checkpoint_as_json(run))
                   .set("seed", static_cast<int64_t>(generate.sampling.seed))
                   .set("cache", cache_as_json(run, decoder))
                   .set("samples", texts_as_json(prompts, texts)));
}

void add_sampling_options(Command& command, GenerateCommandOptions& options) {
  SamplingOptions& sampling = options.generate.sampling;
  command
      .add_option("--temperature", sampling.temperature,
                  "Divide the logits by T before the softmax (default: 1). With T below 1, probable tokens "
                  "are drawn more often; with T above 1, less often. With 0, the most probable token is "
                  "always taken (the one with the smallest id if several are equally probable). --top-k and "
                  "then --top-p are applied after this division")
      .type_name("T");
  command
      .add_option("--top-k", sampling.top_k,
                  "Draw only from the K most probable tokens (default: all tokens)")
      .at_least(1)
      .type_name("K");
  command
      .add_option("--top-p", sampling.top_p,
                  "Draw only from the smallest set of the most probable tokens whose total probability is at "
                  "least P (nucleus sampling; default: 1, which means all tokens)")
      .type_name("P");
  command
      .add_option("--seed", options.seed,
                  "Seed of the random numbers (default: 0). The random numbers for a text depend only on the "
                  "seed, on the position of its prompt in the list of prompts, and on the number of the "
                  "sample; they do not depend on other texts or on the devices")
      .at_least(0)
      .type_name("N");
}

}  // namespace

void add_generate(CommandLine& line, World& world) {
  Command command = line.add_command("generate", "Continue a text with a trained language model");
  const auto options = std::make_shared<GenerateCommandOptions>();
  add_model_options(command, *options, "generate");
  command.add_option("--prompt,-p", options->prompts, "The text to continue. The option may be repeated")
      .type_name("TEXT")
      .one_value_each();
  command
      .add_option("--prompt-file", options->prompt_files,
                  "A file with the text to continue; - is standard input. The option may be repeated")
      .type_name("FILE")
      .one_value_each();
  command
      .add_option("--max-tokens", options->max_tokens,
                  "Maximum number of tokens to generate for a text (default: 200)")
      .at_least(1)
      .type_name("N");
  add_sampling_options(command, *options);
  command
      .add_option("--samples", options->samples, "Number of texts to generate for each prompt (default: 1)")
      .at_least(1)
      .type_name("N");
  command
      .add_option("--stop", options->generate.stops,
                  "Stop generating when the generated text contains this stop text. The stop text is removed "
                  "from the result. The option may be repeated")
      .type_name("TEXT")
      .one_value_each();
  command
      .add_option("--batch-size", options->batch_size,
                  "Number of texts to generate at the same time (default: the batch size of the training)")
      .at_least(1)
      .type_name("N");
  command.add_flag("--no-cache", options->no_cache,
                   "Compute the whole window again for each token, instead of caching the keys and values of "
                   "earlier tokens. This is slower. On CPUs, the generated text is the same");
  add_output_options(command, options->output);
  command.callback([options, &world] { generate(*options, world); });
}

}  // namespace dtrain
