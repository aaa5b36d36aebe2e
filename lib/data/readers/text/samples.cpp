#include "data/readers/text/samples.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "data/loader/parallel.h"
#include "data/text/token_counts.h"

namespace dtrain {

namespace {

constexpr int64_t kSamplesAtOnce = 64;

/// Calls `visit(first, end)` for ranges of samples, on several threads.
void for_each_range(int64_t samples, const std::function<void(int64_t first, int64_t end)>& visit) {
  run_blocks((samples + kSamplesAtOnce - 1) / kSamplesAtOnce, [&](int64_t block) {
    const int64_t first = block * kSamplesAtOnce;
    visit(first, std::min(samples, first + kSamplesAtOnce));
  });
}

/// Returns the positions at which the lines of the text begin, followed by the end of the text.
std::vector<size_t> line_begins(std::string_view text) {
  std::vector<size_t> begins;
  for (size_t at = 0; at < text.size();) {
    begins.push_back(at);
    at = std::min(text.find('\n', at), text.size() - 1) + 1;
  }
  begins.push_back(text.size());
  return begins;
}

}  // namespace

TextSamples samples_of_files(FileListing files) {
  TextSamples samples{files.folder, static_cast<int64_t>(files.files.size()), {}};
  samples.read = [files = std::move(files)](int64_t sample, const auto& use) {
    const ListedFile& listed = files.files[static_cast<size_t>(sample)];
    const std::string path = path_in(files.folder, listed.path);
    check_readable(path, listed);
    const TextFile file(path);
    use(file.text(), file.path());
    file.check();
  };
  return samples;
}

TextSamples samples_of_lines(const std::string& path) {
  const auto file = std::make_shared<const TextFile>(path);
  std::vector<size_t> begins = line_begins(file->text());
  TextSamples samples{path, static_cast<int64_t>(begins.size()) - 1, {}};
  samples.read = [file, begins = std::move(begins)](int64_t sample, const auto& use) {
    const size_t begin = begins[static_cast<size_t>(sample)], end = begins[static_cast<size_t>(sample) + 1];
    std::string_view line = file->text().substr(begin, end - begin);
    if (line.ends_with('\n')) line.remove_suffix(1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    use(line, file->path());
    file->check();
  };
  return samples;
}

LearnedTokens learn_from_samples(const TextSamples& samples, const TokenOptions& options) {
  TokenCounts all(options);
  std::mutex mutex;
  for_each_range(samples.count, [&](int64_t first, int64_t end) {
    TokenCounts counts(options);
    for (int64_t i = first; i < end; ++i)
      samples.read(i, [&](std::string_view text, const std::string& path) {
        if (options.tokens == TokenKind::words) check_utf8(text, path);
        counts.add(text);
      });
    const std::lock_guard lock(mutex);
    all.merge(counts);
  });
  return all.learn(samples.where);
}

std::shared_ptr<const Column> column_of_tokens(const TextSamples& samples, const Tokenizer& tokenizer,
                                               int64_t length) {
  const auto width = static_cast<size_t>(length);
  const auto data = allocate_bytes(static_cast<size_t>(samples.count) * width * sizeof(int32_t));
  auto* const ids = reinterpret_cast<int32_t*>(data.get());
  for_each_range(samples.count, [&](int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i)
      samples.read(i, [&](std::string_view text, const std::string& path) {
        if (tokenizer.needs_utf8()) check_utf8(text, path);
        put_tokens(tokenizer, text, {ids + static_cast<size_t>(i) * width, width});
      });
  });
  return std::make_shared<MemoryColumn>(TensorSpec{samples.where, Shape{length}, DType::int32}, samples.count,
                                        data);
}

}  // namespace dtrain
