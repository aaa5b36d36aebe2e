// metrics.csv.
#include "run/record/metrics_table.h"

#include <limits>

#include <doctest/doctest.h>

using namespace dtrain;

namespace {

Json record(int64_t epoch) {
  return Json::object().set("epoch", epoch).set("step", 3 * epoch).set("loss", 1.0 / 3);
}

}  // namespace

TEST_CASE("the metrics table grows by one row per epoch") {
  History history;
  MetricsTable table;
  table.update(history);
  CHECK(table.text().empty());
  history.push(record(1));
  table.update(history);
  CHECK(table.text() == "epoch,step,loss\n1,3,0.3333333333333333\n");
  CHECK_FALSE(table.appended());  // a new header requires rewriting the file
  history.push(record(2));
  table.update(history);
  CHECK(table.appended() == "2,6,0.3333333333333333\n");
  table.update(history);
  CHECK(table.appended() == "");
  CHECK(table.text() == "epoch,step,loss\n1,3,0.3333333333333333\n2,6,0.3333333333333333\n");
}

TEST_CASE("a later metric adds a cell to every row") {
  History history;
  MetricsTable table;
  history.push(record(1));
  table.update(history);
  history.push(record(2).set("val_loss", 0.5));
  history.push(record(3));
  table.update(history);
  CHECK_FALSE(table.appended());
  CHECK(table.text() ==
        "epoch,step,loss,val_loss\n1,3,0.3333333333333333,\n2,6,0.3333333333333333,0.5\n"
        "3,9,0.3333333333333333,\n");
  MetricsTable whole;
  whole.update(history);
  CHECK(whole.text() == table.text());
}

TEST_CASE("non-finite numbers and names with commas are written") {
  History history;
  history.push(Json::object()
                   .set("epoch", 1)
                   .set("step", 1)
                   .set("a,\"b\"", std::numeric_limits<double>::quiet_NaN())
                   .set("up", std::numeric_limits<double>::infinity())
                   .set("none", Json()));
  MetricsTable table;
  table.update(history);
  CHECK(table.text() == "epoch,step,\"a,\"\"b\"\"\",up,none\n1,1,nan,inf,\n");
}
