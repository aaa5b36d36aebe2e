#include "data/columns/source_columns.h"

#include <algorithm>
#include <cstring>

namespace dtrain {

std::shared_ptr<const Column> text_column(const std::string& title, const std::vector<std::string>& texts) {
  size_t width = 1;
  for (const std::string& text : texts) width = std::max(width, text.size());
  const auto data = allocate_bytes(width * texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    std::byte* row = data.get() + i * width;
    std::memcpy(row, texts[i].data(), texts[i].size());
    std::memset(row + texts[i].size(), 0, width - texts[i].size());
  }
  return std::make_shared<MemoryColumn>(TensorSpec{title, Shape{static_cast<int64_t>(width)}, DType::uint8},
                                        static_cast<int64_t>(texts.size()), data);
}

std::string text_of(const Column& column, int64_t row) {
  std::string text(column.row_bytes(), '\0');
  column.read({&row, 1}, text.data());
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

}  // namespace dtrain
