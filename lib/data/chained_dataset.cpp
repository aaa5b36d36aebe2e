#include "data/chained_dataset.h"

#include <algorithm>

#include "data/columns/column.h"

namespace dtrain {

namespace {

class ChainedDataset final : public Dataset {
 public:
  explicit ChainedDataset(std::vector<std::shared_ptr<const Dataset>> parts) : parts_(std::move(parts)) {
    for (const auto& part : parts_) {
      ends_.push_back(size() + part->size());
      has_ids_ = has_ids_ && part->has_ids();
    }
  }

  int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  const std::vector<TensorSpec>& columns() const override { return parts_[0]->columns(); }
  void read(const Samples& samples, std::span<const View> dst) const override {
    for (size_t i = 0; i < dst.size(); ++i)
      if (dst[i].data) read_column(i, samples, dst[i].data);
  }
  void read_column(size_t index, const Samples& samples, void* dst) const override {
    const TensorSpec& spec = columns()[index];
    const size_t row_bytes = static_cast<size_t>(spec.shape.elements()) * bytes_of(spec.dtype);
    for (size_t i = 0; i < samples.size();) {
      const size_t part = part_of(samples.rows[i]);
      // Consecutive samples of `samples` that belong to this part, as row indices within the part.
      std::vector<int64_t> rows;
      for (; i + rows.size() < samples.size() && part_of(samples.rows[i + rows.size()]) == part;)
        rows.push_back(samples.rows[i + rows.size()] - begin_of(part));
      parts_[part]->read_column(index, {rows, samples.seed, samples.epoch},
                                static_cast<std::byte*>(dst) + i * row_bytes);
      i += rows.size();
    }
  }
  DataFacts facts() const override { return parts_[0]->facts(); }
  bool has_ids() const override { return has_ids_; }
  std::string id_title() const override {
    return has_ids_ || forecast_steps() > 0 ? parts_[0]->id_title() : "row";
  }
  int64_t forecast_steps() const override { return parts_[0]->forecast_steps(); }
  std::string sample_id(int64_t index) const override {
    const size_t part = part_of(index);
    return has_ids_ ? parts_[part]->sample_id(index - begin_of(part)) : std::to_string(index);
  }
  std::vector<std::string> warnings() const override {
    std::vector<std::string> all;
    for (const auto& part : parts_)
      for (std::string& warning : part->warnings()) all.push_back(std::move(warning));
    return all;
  }
  bool in_memory() const override {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->in_memory(); });
  }
  bool is_costly() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& part) { return part->is_costly(); });
  }
  size_t working_bytes(int64_t samples) const override {
    size_t most = 0;
    for (const auto& part : parts_) most = std::max(most, part->working_bytes(samples));
    return most;
  }

 private:
  size_t part_of(int64_t row) const {
    return static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), row) - ends_.begin());
  }
  int64_t begin_of(size_t part) const { return part == 0 ? 0 : ends_[part - 1]; }

  std::vector<std::shared_ptr<const Dataset>> parts_;
  std::vector<int64_t> ends_;  // for each part, the end of its range of rows in the whole data set
  bool has_ids_ = true;
};

}  // namespace

std::shared_ptr<const Dataset> chain_datasets(std::vector<std::shared_ptr<const Dataset>> parts) {
  if (parts.size() == 1) return std::move(parts.front());
  return std::make_shared<const ChainedDataset>(std::move(parts));
}

}  // namespace dtrain
