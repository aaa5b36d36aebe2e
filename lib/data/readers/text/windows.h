// Windows over texts, for language models.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/columns/source_columns.h"
#include "data/text/text_file.h"
#include "data/text/tokenizer.h"

namespace dtrain {

struct WindowShape {
  int64_t length = 0, stride = 0;
  bool has_targets = true;  // whether each window needs one more token after it
};

/// Opens an int32 column of windows; a row has the shape [length]. If windows have targets, opens a second
/// column, which has the next token for each token of the first column. In each file, windows begin at
/// multiples of the stride. They do not cross files, because one file does not continue another. Tokens after
/// the last whole window of a file are left out. Each token is stored only once, even if windows overlap.
/// Tokens that are bytes are not stored but read from the files. Throws UserError if no file has enough
/// tokens for a window.
SourceColumns open_windows(const std::vector<std::shared_ptr<const TextFile>>& files,
                           const std::shared_ptr<const Tokenizer>& tokenizer, const WindowShape& shape);

}  // namespace dtrain
