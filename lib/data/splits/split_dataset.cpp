#include "data/splits/split_dataset.h"

#include <algorithm>
#include <stdexcept>

#include "data/augment/mixing.h"
#include "data/columns/gather.h"

namespace dtrain {

SplitDataset::SplitDataset(std::shared_ptr<const CachedColumns> held, std::vector<ColumnPlan> plans,
                           DataSource source, MixPlan mix, Columns columns)
    : held_(std::move(held)),
      columns_(std::move(columns)),
      plans_(std::move(plans)),
      source_(std::move(source)),
      mix_(std::move(mix)),
      first_(source_.from - held_->first) {
  if (columns_.empty()) columns_ = held_->columns;
  for (const ColumnPlan& plan : plans_) {
    specs_.push_back(plan.spec());
    if (source_.windows) specs_.back().shape = plan.spec().shape.prepended(rows_in(specs_.size() - 1));
  }
  in_memory_ =
      std::all_of(columns_.begin(), columns_.end(), [](const auto& column) { return column->in_memory(); });
  is_random_ = !mix_.mixings.empty() || std::any_of(plans_.begin(), plans_.end(),
                                                    [](const ColumnPlan& plan) { return plan.is_random(); });
  is_costly_ =
      std::any_of(plans_.begin(), plans_.end(), [](const ColumnPlan& plan) { return plan.is_costly(); });
}

void SplitDataset::read(const Samples& samples, std::span<const View> dst) const {
  if (dst.size() != plans_.size()) throw std::logic_error("expected a view for each column");
  for (size_t i = 0; i < dst.size(); ++i) {
    if (!dst[i].data) continue;
    const auto expected = static_cast<int64_t>(samples.size()) * specs_[i].shape.elements();
    if (dst[i].dtype != specs_[i].dtype || dst[i].elements() != expected)
      throw std::logic_error("column '" + specs_[i].name + "' is read into a view of another type or size");
    read_column(i, samples, dst[i].data);
  }
}

void SplitDataset::read_column(size_t index, const Samples& samples, void* dst) const {
  read_unmixed(index, samples, dst);
  if (!mix_.mixings.empty()) mix(index, samples, static_cast<float*>(dst));
}

void SplitDataset::mix(size_t index, const Samples& samples, float* dst) const {
  const int64_t elements = specs_[index].shape.elements();
  std::vector<float> others(samples.size() * static_cast<size_t>(elements));
  for (const auto& [mixing, stream] : mix_.mixings) {
    std::vector<int64_t> partners;
    std::vector<Mixing::Blend> blends;
    for (size_t i = 0; i < samples.size(); ++i) {
      Draws draws(samples.key(i), stream);
      partners.push_back(draws.below(size()));
      blends.push_back(mixing->draw(PictureShape(mix_.picture), draws));
    }
    read_unmixed(index, {partners, samples.seed, samples.epoch}, others.data());
    for (size_t i = 0; i < samples.size(); ++i) {
      const auto first = static_cast<int64_t>(i) * elements;
      if (mix_.is_picture[index])
        blend_pictures(blends[i], PictureShape(specs_[index].shape), others.data() + first, dst + first);
      else
        blend_targets(blends[i], others.data() + first, elements, dst + first);
    }
  }
}

void SplitDataset::read_unmixed(size_t index, const Samples& samples, void* dst) const {
  const Column& column = *columns_[index];
  const ColumnPlan& plan = plans_[index];
  std::vector<int64_t> storage;
  const auto rows = rows_of(index, samples.rows, storage);
  const Samples keys = source_.windows ? Samples{rows, samples.seed, samples.epoch} : samples;
  if (column.data()) return column.checked([&] { plan.run({data_of(column), rows, keys}, dst); });
  if (plan.is_copy()) return read_stored_rows(column, rows, dst);
  const auto raw = allocate_bytes(rows.size() * column.row_bytes());
  read_stored_rows(column, rows, raw.get());
  plan.run({raw.get(), row_numbers(0, static_cast<int64_t>(rows.size())), keys}, dst);
}

size_t SplitDataset::working_bytes(int64_t samples) const {
  size_t most = 0;  // the maximum over all columns; columns are read one after the other
  for (size_t i = 0; i < plans_.size(); ++i) {
    const bool is_read_first = !columns_[i]->data() && !plans_[i].is_copy();
    const size_t of_a_row = plans_[i].working_bytes() + (is_read_first ? columns_[i]->row_bytes() : 0) +
                            (source_.windows ? sizeof(int64_t) : 0);
    const auto rows = static_cast<size_t>(samples * rows_in(i));
    most = std::max(most, of_a_row * rows + columns_[i]->working_bytes());
  }
  return most;
}

const std::byte* SplitDataset::data_of(const Column& column) const {
  return column.data() ? column.data() + static_cast<size_t>(first_) * column.row_bytes() : nullptr;
}

std::span<const int64_t> SplitDataset::rows_of(size_t index, std::span<const int64_t> samples,
                                               std::vector<int64_t>& storage) const {
  if (source_.rows.empty() && !source_.windows) return samples;
  storage.reserve(samples.size() * static_cast<size_t>(rows_in(index)));
  for (const int64_t sample : samples)
    if (source_.windows)
      source_.windows->append_rows(index, sample, storage);
    else
      storage.push_back(source_.row(sample));
  for (int64_t& row : storage) row -= source_.from;
  return storage;
}

void SplitDataset::read_stored(size_t index, std::span<const int64_t> samples, void* dst) const {
  std::vector<int64_t> storage;
  read_stored_rows(*columns_[index], rows_of(index, samples, storage), dst);
}

void SplitDataset::read_stored_rows(const Column& column, std::span<const int64_t> rows, void* dst) const {
  if (column.data())
    return column.checked([&] { gather_copy(data_of(column), column.row_bytes(), rows, dst); });
  std::vector<int64_t> stored(rows.begin(), rows.end());
  for (int64_t& row : stored) row += first_;
  column.read(stored, dst);
}

bool SplitDataset::lies_in_memory() const {
  return in_memory_ && std::all_of(columns_.begin(), columns_.end(),
                                   [](const auto& column) { return column->data() != nullptr; });
}

DataIdentity SplitDataset::identity() const {
  std::vector<DataIdentity::File> files = identify_files(source_.paths);
  if (!source_.named.files.empty()) files.push_back(identify_listing("named files", source_.named));
  return {source_.reader, std::move(files), held_->total, source_.from, source_.to, source_.drawn};
}

std::vector<int64_t> SplitDataset::rows_in_files() const {
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < size(); ++i) rows.push_back(source_.row(i));
  return rows;
}

bool SplitDataset::has_ids() const {
  return source_.windows ? !source_.windows->names.empty() : held_->names != nullptr;
}

std::string SplitDataset::id_title() const {
  if (source_.windows) return source_.windows->are_forecasts ? source_.windows->title : "row";
  return has_ids() ? held_->names->spec().name : "row";
}

std::vector<std::string> SplitDataset::warnings() const {
  std::vector<std::string> all = held_->warnings;
  if (source_.windows)
    all.insert(all.end(), source_.windows->warnings.begin(), source_.windows->warnings.end());
  return all;
}

int64_t SplitDataset::forecast_steps() const {
  return source_.windows && source_.windows->are_forecasts ? source_.windows->horizon : 0;
}

std::string SplitDataset::sample_id(int64_t index) const {
  if (source_.windows && source_.windows->are_forecasts)
    return has_ids() ? source_.windows->names[static_cast<size_t>(index)] : std::to_string(index);
  const int64_t row = source_.row(index);
  if (source_.windows) return std::to_string(row);
  return held_->names ? text_of(*held_->names, row - held_->first) : std::to_string(row);
}

std::optional<StoredForm> SplitDataset::stored_form(size_t index) const {
  const auto map = plans_[index].map();
  if (!map || !mix_.mixings.empty()) return std::nullopt;
  StoredForm form{columns_[index]->spec().dtype, {}, {}};
  // The scales and offsets are repeated for each row of a window.
  const int64_t copies = map->scale.size() > 1 ? rows_in(index) : 1;
  for (int64_t i = 0; i < copies; ++i) {
    form.scale.insert(form.scale.end(), map->scale.begin(), map->scale.end());
    form.offset.insert(form.offset.end(), map->offset.begin(), map->offset.end());
  }
  return form;
}

}  // namespace dtrain
