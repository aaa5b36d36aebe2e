#include "run/record/epoch_tables.h"

#include <utility>

#include "nn/loss.h"

namespace dtrain {

TableLineWriter::TableLineWriter(int64_t epoch, int64_t step)
    : text_(Json::object().set("epoch", epoch).set("step", step).dump()) {
  text_.pop_back();  // removes the closing brace, so that tables can be appended
}

void TableLineWriter::add(const std::string& name, const Json& table) {
  text_ += ", " + Json(name).dump() + ": " + table.dump();
  empty_ = false;
}

TableLine TableLineWriter::finish() {
  if (empty_) return nullptr;
  text_ += "}\n";
  text_.shrink_to_fit();
  return std::make_shared<const std::string>(std::move(text_));
}

TableLine table_line(const Json& record) {
  return std::make_shared<const std::string>(record.dump() + "\n");
}

TableBytes table_bytes(const RunConfig& config) {
  // Estimated size of a number in the text, in bytes: a count of up to six digits and a separator.
  constexpr size_t kText = 8;
  // The maximum number of lines in memory: one line each for the newest epoch, the best epoch, and the best
  // epoch whose checkpoint is on disk; and two lines for each of at most two checkpoints that are being
  // written.
  constexpr size_t kLines = 7;
  size_t elements = 0;
  for (const Head& head : config.heads)
    for (const HeadMetric& metric : head.metrics)
      if (!metric.metric->is_number(config.graph.spec(head.output)))
        elements += static_cast<size_t>(metric.sums);
  if (config.dataset.validation) elements *= 2;
  return {elements * (sizeof(Json) + kLines * kText), 2 * elements * kText};
}

}  // namespace dtrain
