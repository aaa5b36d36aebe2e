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
  bool has_targets = true;  // if false, the last window needs no token after it
};

/// Opens an int32 column of windows [length] and, with targets, a second one that has the next token for each
/// token of the first. Windows begin at multiples of the stride in each file and do not cross files, because
/// one file does not continue another. Tokens after the last whole window of a file are left out. The tokens
/// are stored once; bytes stay in the file. Throws UserError if no file has enough tokens for a window.
SourceColumns open_windows(const std::vector<std::shared_ptr<const TextFile>>& files,
                           const std::shared_ptr<const Tokenizer>& tokenizer, const WindowShape& shape);

}  // namespace dtrain
