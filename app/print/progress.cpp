#include "print/progress.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "base/utf8.h"
#include "cli/console.h"
#include "runs/utilisation.h"

namespace dtrain {

namespace {

using Clock = std::chrono::steady_clock;

class QuietProgress : public Observer {
 public:
  void on_warning(const std::string& message) override { print_warning(message); }
};

/// Joins the parts of a line for standard error. On a terminal, breaks it at the terminal's width and indents
/// the following lines.
std::string lay_out(const std::vector<std::string>& parts) {
  const size_t width = stderr_is_terminal() ? terminal_width() : std::string::npos;
  std::string text = parts.front();
  size_t column = text.size();
  for (size_t i = 1; i < parts.size(); ++i) {
    const bool fits = column + 2 + parts[i].size() <= width;
    text += (fits ? "  " : "\n  ") + parts[i];
    column = (fits ? column : 0) + 2 + parts[i].size();
  }
  return text;
}

/// Returns parts such as "loss 0.3121" and "accuracy 0.9134".
std::vector<std::string> metric_parts(const Json& record) {
  constexpr std::array<std::string_view, 5> kOthers{"epoch", "step", "learning_rate", "seconds",
                                                    "samples_per_second"};
  std::vector<std::string> parts;
  for (const auto& [name, value] : record.entries())
    if (std::find(kOthers.begin(), kOthers.end(), name) == kOthers.end() && !value.is_array())
      parts.push_back(fmt::format("{} {}", name, format_value(value.as_double())));
  return parts;
}

std::string epoch_text(int64_t epoch, int64_t epochs) {
  return fmt::format("epoch {}/{}", epoch, epochs);
}

std::string speed_text(double samples_per_second) {
  return (samples_per_second < 10 ? fmt::format("{:.2g}", samples_per_second)
                                  : format_count(std::llround(samples_per_second))) +
         " samples/s";
}

/// Waiting for samples is reported if it takes at least this fraction of an epoch.
constexpr double kMuchWaiting = 0.2;

std::string waiting_text(double share) {
  return fmt::format("{:.0f} % waiting for samples", 100 * share);
}

/// Prints a line per epoch.
class EpochProgress : public QuietProgress {
 public:
  void on_step(const Progress& progress) override { waiting_ = progress.waiting; }
  void on_epoch(const Json& record, int64_t epochs) override {
    std::vector<std::string> parts = metric_parts(record);
    parts.insert(parts.begin(), epoch_text(record.find("epoch")->as_int(), epochs));
    parts.push_back(fmt::format("{:.1f} s", record.find("seconds")->as_double()));
    parts.push_back(speed_text(record.find("samples_per_second")->as_double()));
    if (waiting_ >= kMuchWaiting) parts.push_back(waiting_text(waiting_));
    print_note(lay_out(parts));
  }
  void on_note(const std::string& message) override { print_note(message); }

 private:
  double waiting_ = 0;  // fraction of the current epoch spent waiting for samples
};

/// Prints a line after each epoch, and one per minute within an epoch.
class LineProgress final : public EpochProgress {
 public:
  void on_step(const Progress& progress) override {
    EpochProgress::on_step(progress);
    if (progress.step == progress.steps || !is_time()) return;
    std::vector<std::string> parts{epoch_text(progress.epoch, progress.epochs),
                                   fmt::format("step {}/{}", progress.step, progress.steps)};
    for (const auto& [name, value] : progress.means())
      parts.push_back(fmt::format("{} {}", name, format_value(value)));
    parts.push_back(speed_text(progress.samples_per_second));
    parts.push_back(format_duration(progress.seconds_left) + " left");
    print_note(lay_out(parts));
  }
  void on_validation(int64_t epoch, int64_t epochs, int64_t step, int64_t steps) override {
    if (is_time())
      print_note(lay_out({epoch_text(epoch, epochs), fmt::format("validating {}/{}", step - 1, steps)}));
  }
  void on_epoch(const Json& record, int64_t epochs) override {
    EpochProgress::on_epoch(record, epochs);
    printed_ = Clock::now();
  }

 private:
  /// Returns true, and restarts the interval, if the last line was printed at least a minute ago.
  bool is_time() {
    const auto now = Clock::now();
    if (now - printed_ < std::chrono::minutes(1)) return false;
    printed_ = now;
    return true;
  }

  Clock::time_point printed_ = Clock::now();
};

/// Draws a progress bar in place on the last line. Messages replace it (console.h), and it is drawn again
/// below them.
class BarProgress final : public EpochProgress {
 public:
  explicit BarProgress(bool gpus) : utilisation_(gpus) {}
  ~BarProgress() override {
    if (visible_) std::fputs("\r\x1b[K", stderr);
  }

  void on_step(const Progress& progress) override {
    EpochProgress::on_step(progress);
    if (!is_due() && progress.step < progress.steps) return;
    show(draw(progress, utilisation_.text(), terminal_width() - 1));
  }
  void on_validation(int64_t epoch, int64_t epochs, int64_t step, int64_t steps) override {
    if (is_due())
      show(fmt::format("{} validating {}/{}", epoch_text(epoch, epochs), step - 1, steps)
               .substr(0, terminal_width() - 1));
  }
  void on_wait(const std::string& what) override { show((what + " ...").substr(0, terminal_width() - 1)); }

 private:
  /// Returns true, and restarts the interval, if the bar was drawn long enough ago to be drawn again.
  bool is_due() {
    constexpr std::chrono::milliseconds kBetween(100);
    const auto now = Clock::now();
    if (now - drawn_ < kBetween) return false;
    drawn_ = now;
    return true;
  }
  void show(const std::string& text) {
    const std::string line = "\r\x1b[K" + text;
    std::fwrite(line.data(), 1, line.size(), stderr);
    visible_ = true;
  }

  /// Returns a line of at most `width` characters. Omits parts that do not fit: a truncated number would be
  /// misleading. Priority: position in the epoch, time left in the epoch, a short bar, the loss, waiting for
  /// samples, speed, time left in the run, device utilization, other metrics. Any remaining space extends the
  /// bar.
  static std::string draw(const Progress& progress, const std::string& utilisation, size_t width) {
    constexpr size_t kLeastBar = 10, kMostBar = 32;  // including brackets
    const std::string head = epoch_text(progress.epoch, progress.epochs) + " ";
    const std::string count = fmt::format(" {}/{}", progress.step, progress.steps);
    if (head.size() + count.size() > width) return count.size() <= width ? count : "";
    size_t room = width - head.size() - count.size();
    const auto taken = [&room](std::string part) {
      if (part.size() > room) return std::string();
      room -= part.size();
      return part;
    };
    const auto means = progress.means();
    const auto metric = [&](size_t i) {
      const auto& [name, value] = means[i];
      return taken(fmt::format("  {} {}", visible_in_line(name), format_value(value)));
    };
    const std::string left = taken(fmt::format("  {} left", format_duration(progress.seconds_left)));
    size_t bar = taken(std::string(kLeastBar, ' ')).size();
    std::string metrics = means.empty() ? "" : metric(0);
    const std::string waiting =
        progress.waiting >= kMuchWaiting ? taken("  " + waiting_text(progress.waiting)) : "";
    const std::string speed = taken("  " + speed_text(progress.samples_per_second));
    std::string of_run;
    if (progress.epochs > progress.epoch)
      of_run = taken(fmt::format(", {} of the run", format_duration(progress.run_seconds_left)));
    const std::string busy = utilisation.empty() ? "" : taken("  " + utilisation);
    for (size_t i = 1; i < means.size(); ++i) metrics += metric(i);
    if (bar > 0) bar = std::min(bar + room, kMostBar);
    std::string line = head + (bar > 0 ? draw_bar(progress, bar - 2) : "") + count + metrics + speed + busy +
                       waiting + left + of_run;
    return bar > 0 ? color_bar(std::move(line), head.size()) : line;
  }

  static std::string draw_bar(const Progress& progress, size_t width) {
    const auto steps = static_cast<size_t>(std::max<int64_t>(progress.steps, 1));
    const size_t done = std::min(width, width * static_cast<size_t>(progress.step) / steps);
    return "[" + std::string(done, '=') + std::string(width - done, ' ') + "]";
  }

  /// Colors the text from the opening bracket at `start` to the closing bracket green.
  static std::string color_bar(std::string line, size_t start) {
    line.insert(line.find(']', start) + 1, "\x1b[0m");
    return line.insert(start, "\x1b[32m");
  }

  Utilisation utilisation_;
  Clock::time_point drawn_{};
  bool visible_ = false;
};

}  // namespace

std::unique_ptr<Observer> make_progress(bool quiet, bool gpus) {
  if (quiet || console_is_muted()) return std::make_unique<QuietProgress>();
  if (stderr_is_lively()) return std::make_unique<BarProgress>(gpus);
  return std::make_unique<LineProgress>();
}

std::string format_metrics(const Json& record, const std::string& separator) {
  return fmt::format("{}", fmt::join(metric_parts(record), separator));
}

}  // namespace dtrain
