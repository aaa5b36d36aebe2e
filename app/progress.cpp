#include "progress.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "console.h"
#include "text.h"

namespace dtrain {

namespace {

class QuietProgress : public Observer {
 public:
  void on_warning(const std::string& message) override { print_warning(message); }
};

class LineProgress : public QuietProgress {
 public:
  void on_epoch(const Json& record, int64_t epochs) override {
    print_note(
        fmt::format("epoch {}/{}  {}  {:.1f} s  {} samples/s", record.find("epoch")->as_int(), epochs,
                    format_metrics(record, "  "), record.find("seconds")->as_double(),
                    format_count(static_cast<int64_t>(record.find("samples_per_second")->as_double()))));
  }
  void on_note(const std::string& message) override { print_note(message); }
};

/// One line at the bottom, written anew in place; what is printed meanwhile goes above it.
class BarProgress final : public LineProgress {
 public:
  ~BarProgress() override { erase(); }

  void on_step(const Progress& progress) override {
    constexpr std::chrono::milliseconds kBetween(100);
    const auto now = Clock::now();
    if (now - drawn_ < kBetween && progress.step < progress.steps) return;
    drawn_ = now;
    const std::string line = "\r\x1b[K" + draw(progress, terminal_width() - 1);
    std::fwrite(line.data(), 1, line.size(), stderr);
    visible_ = true;
  }
  void on_epoch(const Json& record, int64_t epochs) override {
    erase();
    LineProgress::on_epoch(record, epochs);
  }
  void on_note(const std::string& message) override {
    erase();
    LineProgress::on_note(message);
  }
  void on_warning(const std::string& message) override {
    erase();
    LineProgress::on_warning(message);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void erase() {
    if (visible_) std::fputs("\r\x1b[K", stderr);
    visible_ = false;
  }

  /// At most `width` characters: where not all fit the bar shrinks, then metrics are left out, then all is
  /// cut.
  static std::string draw(const Progress& progress, size_t width) {
    constexpr size_t kLeastBar = 8, kMostBar = 30;
    const std::string head = fmt::format("epoch {}/{} ", progress.epoch, progress.epochs);
    std::string tail = fmt::format(" {}/{}", progress.step, progress.steps);
    const std::string speed = fmt::format("  {} samples/s  {} left",
                                          format_count(static_cast<int64_t>(progress.samples_per_second)),
                                          format_duration(progress.seconds_left));
    for (const auto& [name, value] : progress.means) {
      std::string metric = fmt::format("  {} {}", name, format_value(value));
      if (head.size() + kLeastBar + 2 + tail.size() + metric.size() + speed.size() > width) break;
      tail += metric;
    }
    tail += speed;
    const size_t taken = head.size() + 2 + tail.size();
    const size_t bar = taken + kLeastBar > width ? 0 : std::min(width - taken, kMostBar);
    std::string line = head + (bar > 0 ? draw_bar(progress, bar) : "") + tail;
    if (line.size() > width && bar == 0) line.resize(width);
    return bar > 0 ? colour_bar(std::move(line), head.size()) : line;
  }

  static std::string draw_bar(const Progress& progress, size_t width) {
    const auto steps = static_cast<size_t>(std::max<int64_t>(progress.steps, 1));
    const size_t done = std::min(width, width * static_cast<size_t>(progress.step) / steps);
    return "[" + std::string(done, '=') + std::string(width - done, ' ') + "]";
  }

  /// Green from the opening bracket at `start` to the closing one.
  static std::string colour_bar(std::string line, size_t start) {
    line.insert(line.find(']', start) + 1, "\x1b[0m");
    return line.insert(start, "\x1b[32m");
  }

  Clock::time_point drawn_{};
  bool visible_ = false;
};

}  // namespace

std::unique_ptr<Observer> make_progress(bool quiet) {
  if (quiet) return std::make_unique<QuietProgress>();
  if (stderr_is_lively()) return std::make_unique<BarProgress>();
  return std::make_unique<LineProgress>();
}

std::string format_metrics(const Json& record, const std::string& separator) {
  constexpr std::array<std::string_view, 5> kOthers{"epoch", "step", "learning_rate", "seconds",
                                                    "samples_per_second"};
  std::vector<std::string> parts;
  for (const auto& [name, value] : record.entries())
    if (std::find(kOthers.begin(), kOthers.end(), name) == kOthers.end())
      parts.push_back(fmt::format("{} {}", name, format_value(value.as_double())));
  return fmt::format("{}", fmt::join(parts, separator));
}

}  // namespace dtrain
