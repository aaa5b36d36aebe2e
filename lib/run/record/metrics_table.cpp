#include "run/record/metrics_table.h"

#include <algorithm>

#include "base/formats/csv_cell.h"

namespace dtrain {

namespace {

std::string cell_of(const Json& value) {
  if (value.is_null()) return "";
  return csv_cell(value.is_string() ? value.as_string() : value.dump());
}

std::string line_of(const std::vector<std::string>& cells) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) line += (i > 0 ? "," : "") + cells[i];
  return line + "\n";
}

}  // namespace

bool MetricsTable::add_columns(const Json& record) {
  const size_t before = columns_.size();
  for (const auto& [key, value] : record.entries())
    if (std::find(columns_.begin(), columns_.end(), key) == columns_.end()) columns_.push_back(key);
  return columns_.size() > before;
}

std::string MetricsTable::row_of(const Json& record) const {
  std::vector<std::string> cells;
  for (const std::string& column : columns_) {
    const Json* value = record.find(column);
    cells.push_back(value ? cell_of(*value) : "");
  }
  return line_of(cells);
}

void MetricsTable::update(const History& history) {
  header_changed_ = false;
  appended_ = text_.size();
  const std::string_view all = history.text();
  std::vector<Json> records;
  for (size_t end; taken_ < all.size(); taken_ = end + 1) {
    end = all.find('\n', taken_);
    records.push_back(Json::parse(all.substr(taken_, end - taken_)));
    header_changed_ = add_columns(records.back()) || header_changed_;
  }
  if (header_changed_) {
    records.clear();
    for (size_t at = 0, end; at < all.size(); at = end + 1) {
      end = all.find('\n', at);
      records.push_back(Json::parse(all.substr(at, end - at)));
    }
    std::vector<std::string> header;
    for (const std::string& column : columns_) header.push_back(csv_cell(column));
    text_ = line_of(header);
  }
  for (const Json& record : records) text_ += row_of(record);
}

std::optional<std::string_view> MetricsTable::appended() const {
  if (header_changed_) return std::nullopt;
  return std::string_view(text_).substr(appended_);
}

}  // namespace dtrain
