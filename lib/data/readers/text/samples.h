// Texts that are the samples of a data set. Each sample is a file, or a line of a file.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/columns/column.h"
#include "data/files/folder_listing.h"
#include "data/text/text_file.h"
#include "data/text/tokenizer.h"

namespace dtrain {

struct TextSamples {
  std::string where;  // the file or folder of the samples
  int64_t count = 0;
  /// Calls `use` with the text of a sample and the path of its file. Any thread may call it.
  std::function<void(int64_t sample,
                     const std::function<void(std::string_view text, const std::string& path)>& use)>
      read;
};

/// Returns one sample for each file.
TextSamples samples_of_files(FileListing files);
/// Returns one sample for each line of the file, without the end of the line (\n or \r\n). Empty lines are
/// samples, too.
TextSamples samples_of_lines(const std::string& path);

/// Learns a vocabulary from all samples. Throws UserError for a text that is not UTF-8, if the options
/// require UTF-8.
LearnedTokens learn_from_samples(const TextSamples& samples, const TokenOptions& options);

/// Returns a column with the ids of each sample, truncated or padded to `length` ids. Throws UserError like
/// learn_from_samples().
std::shared_ptr<const Column> column_of_tokens(const TextSamples& samples, const Tokenizer& tokenizer,
                                               int64_t length);

}  // namespace dtrain
