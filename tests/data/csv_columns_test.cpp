// Options of the csv reader for dates, amounts, missing values, and file formats other than plain CSV.
#include <doctest/doctest.h>

#include "data/csv_run.h"

namespace dtrain::test {

namespace {

using Values = std::vector<double>;
using Names = std::vector<std::string>;
const std::string kHead = "header: true, target: y";

}  // namespace

TEST_CASE_FIXTURE(Run, "rows without a target are skipped on request") {
  const std::string text = "n,a,y\nu,1,0\nv,,\nw,3,NA\nx,4,1\n";
  CHECK(contains(error("n,a,y\nu,1,0\nv,2,\n", kHead + ", id: n", {{"x", {1}}}), "train.csv:3:5: "));
  const auto data = train(text, kHead + ", id: n, missing_target: skip", {{"x", {1}}});
  CHECK(data->size() == 2);
  CHECK(read_all(*data, 0) == Values{1, 4});
  CHECK(read_all(*data, 1) == Values{0, 1});
  CHECK(data->sample_id(1) == "x");
  REQUIRE(data->warnings().size() == 1);
  CHECK(contains(data->warnings()[0], "train.csv: 2 of 4 rows have no target and are left out"));
  // The values in skipped rows do not become categories or classes.
  train("a,c,y\n1,red,no\n2,green,\n3,blue,?\n4,red,yes\n", kHead + ", categories: c, missing_target: skip",
        {{"x", {2}}});
  CHECK(spec.facts.source.categories.at("c") == Names{"red"});
  CHECK(spec.facts.source.class_names.at("target") == Names{"no", "yes"});
  // Files for prediction have no targets.
  CHECK(predict("a,c,y\n1,red,\n")->size() == 1);
  CHECK(train("a,y\n1,2\n3,4\n", kHead + ", missing_target: skip", {{"x", {1}}})->warnings().empty());
  CHECK(contains(error("a,y\n1,\n", kHead + ", missing_target: skip", {{"x", {1}}}),
                 "expected rows with a target, found none"));
  // A target such as '-' may be a missing value or the name of a class. It is the name of a class only if
  // another target is a name, too.
  CHECK(train("a,y\n1,-\n3,4\n", kHead + ", missing_target: skip", {{"x", {1}}})->size() == 1);
  CHECK(train("a,y\n1,-\n3,up\n", kHead + ", missing_target: skip", {{"x", {1}}})->size() == 2);
}

TEST_CASE_FIXTURE(Run, "rows without a target are skipped in every block of a large file") {
  std::string text = "a,y\n";
  Values expected;
  for (int i = 0; i < 400000; ++i) {
    const bool kept = i % 3 != 0 && i % 1000 > 400;
    text += std::to_string(i) + (kept ? ",1\n" : ",\n");
    if (kept) expected.push_back(i);
  }
  const auto data = train(text, kHead + ", missing_target: skip", {{"x", {1}}});
  CHECK(read_all(*data, 0) == expected);
}

TEST_CASE_FIXTURE(Run, "a date column is replaced by its date features") {
  const std::string dates = kHead + ", dates: {d: [year, month, weekday, days]}";
  const auto data = train("a,d,b,y\n1,31/01/2026,2,0\n3,01/02/2026,4,1\n", dates, {{"x", {6}}});
  CHECK(read_all(*data, 0) == Values{1, 2026, 1, 5, 20484, 2, 3, 2026, 2, 6, 20485, 4});
  CHECK(spec.facts.source.readings.at("d").form == DateForm{.day_first = true});
  // Other files are read with the settings of the training file. Their columns may be found by name or by
  // position.
  CHECK(read_all(*validate("y,d,b,a\n1,03/02/2026,4,1\n", kHead), 0) == Values{1, 2026, 2, 1, 20487, 4});
  CHECK(read_all(*predict("b,a,d\n0,9,1 February 2026\n"), 0) == Values{9, 2026, 2, 6, 20485, 0});
  CHECK(contains(
      error_of([&] { predict("b,a,d\n0,9,01/31/2026\n"); }),
      "in.csv:2:5: expected a date with year, month, weekday, days (in the order day/month/year) in the "
      "column 'd', found '01/31/2026'"));
  const auto why = [&](const std::string& date) {
    return error_of([&] { predict("b,a,d\n0,9," + date + "\n"); });
  };
  CHECK(why("01/31/2026")
            .ends_with("; the column is read as day/month/year, as in the training file, but this "
                       "date is month/day/year"));
  CHECK(why("31/02/2026").ends_with("found '31/02/2026'; February has no day 31"));
  CHECK(why("2026-02-29").ends_with("found '2026-02-29'; February 2026 has no day 29"));
  CHECK(why("June 31 2026").ends_with("; June has no day 31"));
  CHECK(why("soon").ends_with("found 'soon'"));
  CHECK(contains(
      error("d,y\n2026-01-31,0\n17,0\n", kHead + ", dates: {d: [days]}", {{"x", {1}}}),
      "train.csv:3:1: expected a date with days (in the order month/day/year) in the column 'd', found "
      "'17'; other rows of the column have dates, not plain numbers"));
  // The file has no header, and one value is missing.
  const auto other =
      train("2026-01-31T12:00,1,0\n,2,1\n", "dates: {0: [days, hour]}, fill: mean, target: -1", {{"x", {3}}});
  CHECK(read_all(*other, 0) == Values{20484.5, 12, 1, 20484.5, 12, 2});
  CHECK(read_all(*predict("1970-01-02,7\n"), 0) == Values{1, 0, 7});
  CHECK(contains(error("d,y\n,0\n2026-01-31,0\n", kHead + ", dates: {d: [days]}", {{"x", {1}}}),
                 "train.csv:2:1: expected a date with days"));
  CHECK(contains(error("d,y\nMarch,0\n", kHead + ", dates: {d: [month, year]}", {{"x", {2}}}),
                 "found 'March'"));
  CHECK(read_all(*train("d,y\nMarch,0\nmay,1\n", kHead + ", dates: {d: [month]}", {{"x", {1}}}), 0) ==
        Values{3, 5});
  CHECK(read_all(*train("d,y\n01/02/2026,0\n", kHead + ", dayfirst: true, dates: {d: [month]}", {{"x", {1}}}),
                 0) == Values{2});
  CHECK(read_all(*train("d,y\n20260131,0\n", kHead + ", dates: {d: [day]}", {{"x", {1}}}), 0) == Values{31});
}

TEST_CASE_FIXTURE(Run, "date features of unsuitable columns are errors") {
  const std::vector<TensorSpec> x{{"x", {2}}};
  CHECK(contains(error("d,y\n1,0\n", kHead + ", dates: {y: [days]}", x), "but 'y' is the target column"));
  CHECK(contains(error("d,y\n1,0\n", kHead + ", dates: {d: [days]}, amounts: d", x),
                 "more than one of the options 'dates'"));
  CHECK(contains(error("d,y\n1,0\n", kHead + ", dates: {e: [days]}", x), "a column named 'e'"));
  CHECK(contains(error("d,y\n1,0\n", kHead + ", dates: {d: []}", x),
                 "at least one feature for the column 'd'"));
  CHECK(contains(error("d,y\n1,0\n", kHead + ", dates: {d: [century]}", x), "century"));
  CHECK(contains(error("d,y\n1,0\n", kHead + ", dates: {d: [days]}", {{"x", {1}, DType::int32}}),
                 "belongs to the int32 input 'x'"));
}

TEST_CASE_FIXTURE(Run, "amounts are read in features and targets") {
  const auto data = train("p,s,y\n\"$1,200\",4.5%,\"$62,199\"\n(3),NA,$7\n",
                          kHead + ", amounts: [p, s, y], fill: 0", {{"x", {2}}}, {kNumber});
  CHECK(read_all(*data, 0) == Values{1200, 4.5, -3, 0});
  CHECK(read_all(*data, 1) == Values{62199, 7});
  CHECK(read_all(*predict("s,p\n1%,12 EUR\n"), 0) == Values{12, 1});
  CHECK(read_all(*validate("s,p,y\n1%,12 EUR,$5\n", kHead), 1) == Values{5});
  CHECK(contains(error_of([&] { predict("s,p\n1%,5M\n"); }),
                 "expected an amount in the column 'p', found '5M'"));
}

TEST_CASE_FIXTURE(Run, "missing values may have additional names and indicator features") {
  const std::string text = "a,c,b,y\n1,u,5,0\n?,missing,6,1\n-999,u,7,0\n";
  const std::string options = kHead + ", categories: c, fill: -1, na_values: [missing, -999], ";
  CHECK(read_all(*train(text, options + "indicators: [a]", {{"x", {4}}}), 0) ==
        Values{1, 0, 1, 5, -1, 1, 0, 6, -1, 1, 1, 7});
  // In the training file, the column `b` has no missing values. Therefore it has no indicator, not even for
  // files in which values are missing.
  CHECK(read_all(*train(text, options + "indicators: true", {{"x", {4}}}), 0) ==
        Values{1, 0, 1, 5, -1, 1, 0, 6, -1, 1, 1, 7});
  CHECK(read_all(*predict("b,c,a\n,missing,-999.0\n"), 0) == Values{-1, 1, 0, -1});
  CHECK(read_all(*train(text, options + "indicators: [c, b]", {{"x", {5}}}), 0) ==
        Values{1, 1, 0, 5, 0, -1, 0, 1, 6, 0, -1, 1, 0, 7, 0});
  // Missing values are filled with the mean of the training split, also in columns with an indicator.
  const auto data =
      train("a,b,y\n1,2,0\n,4,1\n5,,1\n", kHead + ", fill: mean, indicators: true", {{"x", {4}}});
  CHECK(read_all(*data, 0) == Values{1, 0, 2, 0, 3, 1, 4, 0, 5, 0, 3, 1});
  CHECK(read_all(*predict("b,a\n,\n"), 0) == Values{3, 1, 3, 1});
  const auto dates = train("d,y\n2026-01-31,0\n,1\n",
                           kHead + ", dates: {d: [month, day]}, indicators: d, fill: 0", {{"x", {3}}});
  CHECK(read_all(*dates, 0) == Values{1, 31, 0, 0, 0, 1});
}

TEST_CASE_FIXTURE(Run, "decimal commas, thousands separators and comments are read") {
  const std::string german = kHead + ", delimiter: ;, decimal: \",\", thousands: .";
  CHECK(read_all(*train("a;b;y\n1,5;1.234,25;0\n-2;0,125;1\n", german, {{"x", {2}}}), 0) ==
        Values{1.5, 1234.25, -2, 0.125});
  CHECK(read_all(*predict("b;a\n0,5;7\n"), 0) == Values{7, 0.5});
  CHECK(read_all(*train("a,y\n\"1,5\",0\n", kHead + ", decimal: \",\"", {{"x", {1}}}), 0) == Values{1.5});
  CHECK(read_all(*train("a,y\n\"1,500\",0\n", kHead + ", thousands: \",\"", {{"x", {1}}}), 0) ==
        Values{1500});
  const std::string notes = "# of 2026\n\na,n,y # names\n1,\"#1\",0\n# 5,x,1\n2,u,1# the last\n#";
  const auto data = train(notes, kHead + ", comment: \"#\", id: n", {{"x", {1}}});
  CHECK(read_all(*data, 0) == Values{1, 2});
  CHECK(data->sample_id(0) == "#1");
  CHECK(contains(error("# a\na,y\n1,0\nred,1 # b\n", kHead + ", comment: \"#\"", {{"x", {1}}}),
                 "train.csv:4:1: "));
  for (const std::string options : {"decimal: ab", "decimal: .., thousands: .", "thousands: .",
                                    "thousands: 5", "comment: \",\"", "delimiter: ab"})
    CHECK(contains(error("a,y\n1,0\n", kHead + ", " + options, {{"x", {1}}}), "error:"));
}

TEST_CASE_FIXTURE(Run, "in a table with one column, a blank line between rows is a missing value") {
  const std::vector<TensorSpec> one{{"x", {1}}};
  const std::string header = "header: true, target: {input: x}", filled = header + ", fill: -1",
                    headless = "target: {input: x}, fill: -1";
  const auto values = [&](const std::string& text, const std::string& options) {
    return read_all(*train(text, options, one, {kNumber}), 0);
  };
  CHECK(values("\na\n1\n\n3\n \r\n5\n\n \r\n", filled) == Values{1, -1, 3, -1, 5});
  CHECK(values("a\n\n\"\"\n3\n", filled) == Values{-1, -1, 3});
  CHECK(values("a\r\n1\r\n\r\n3", filled) == Values{1, -1, 3});
  CHECK(values("a\n1\n3\n\n", header) == Values{1, 3});
  CHECK(values("\n1\n\n3\n", headless) == Values{-1, 1, -1, 3});
  CHECK(
      contains(error("a\n1\n\n3\n", header, one, {kNumber}),
               "train.csv:3:1: expected a finite number in the column 'a', found a blank line; set 'fill'"));
  CHECK(contains(error("a\n1\n\"\"\n3\n", header, one, {kNumber}),
                 "train.csv:3:1: expected a finite number "
                 "in the column 'a', found ''; set 'fill'"));
  // Lines that have only a comment are not rows.
  CHECK(values("# b\n\n1\n# c\n  # d\n\n3 # e\n\n# f\n", headless + ", comment: \"#\"") == Values{1, -1, 3});
  // In a table with more than one column, a blank line is not a row.
  CHECK(values("a,b\n1,2\n\n3,4\n", header + ", columns: [a]") == Values{1, 3});
  // A file for predictions has one row for each line.
  train("a,y\n1,0\n2,1\n", "header: true, target: y, fill: -1", one);
  CHECK(read_all(*predict("a\n5\n\n6\n\n"), 0) == Values{5, -1, 6});
}

TEST_CASE_FIXTURE(Run, "in a table with one column, blank lines are rows in every block of a large file") {
  std::string text = "a\n";
  Values expected;
  for (int i = 0; i < 600000; ++i) {
    const bool is_blank = i % 3 == 0 || i % 1000 < 100;
    text += is_blank ? "\n" : std::to_string(i) + "\n";
    expected.push_back(is_blank ? -1 : i);
  }
  text += "7\n\n\n";
  expected.push_back(7);
  const auto data = train(text, "header: true, target: {input: x}, fill: -1", {{"x", {1}}}, {kNumber});
  CHECK(read_all(*data, 0) == expected);
}

TEST_CASE_FIXTURE(Run, "values may be separated by whitespace, with R's row names") {
  const std::string blanks = kHead + ", delimiter: whitespace";
  CHECK(read_all(*train("  a \t b  y\n 1   2 0\r\n\n3\t4\t\t1  \n", blanks, {{"x", {2}}}), 0) ==
        Values{1, 2, 3, 4});
  CHECK(read_all(*predict("b a\n 5    6"), 0) == Values{6, 5});
  CHECK(contains(error("a b y\n1 2 0\n1  red 0\n", blanks, {{"x", {2}}}),
                 "train.csv:3:4: expected a finite number"));
  CHECK(contains(error("a b y\n1 2\n", blanks, {{"x", {2}}}), "train.csv:2: expected 3 values"));
  const auto data = train("\"a\" \"my b\" \"y\"\n\"r 1\" 1 2 0\n\"r \"\"2\" 3 4 1\n", blanks, {{"x", {2}}});
  CHECK(read_all(*data, 0) == Values{1, 2, 3, 4});
  CHECK(data->sample_id(1) == "r \"2");
  CHECK(data->id_title() == "row.names");
  REQUIRE(data->warnings().size() == 1);
  CHECK(contains(data->warnings()[0], "the first column is used as row names"));
  CHECK(predict("\"my b\" \"a\"\n\"q\" 1 2\n")->sample_id(0) == "q");
  CHECK(read_all(*predict("a \"my b\"\n1 2\n"), 0) == Values{1, 2});
  // A trailing delimiter does not add a column name.
  CHECK(
      contains(error("a,y\n1,0,\n", kHead, {{"x", {1}}}), "expected 2 values as in the first line, found 3"));
  write_file(folder / "mark.csv", "\xef\xbb\xbf\"my a\"  y\n5 1\n");
  spec = parse(folder, "train: {csv: {file: mark.csv, " + blanks + "}}");
  CHECK(read_all(*open_split(spec, *spec.train, {{"x", {1}}}, {kLabel}), 0) == Values{5});
}

TEST_CASE_FIXTURE(Run, "the error for an invalid value suggests an option") {
  const auto advice = [&](const std::string& value, const std::string& options = "") {
    return error("a;y\n1;0\n" + value + ";1\n", kHead + ", delimiter: ;" + options, {{"x", {1}}});
  };
  CHECK(contains(advice("Jan 1 2000"),
                 "set 'dates: {a: [year, month, weekday, days]}' to make features from it"));
  CHECK(contains(advice("$5"), "set 'amounts: [a]' to read numbers with a currency"));
  CHECK(contains(advice("--"), "'--'; set 'na_values: [\"--\"]' if this text marks a missing value"));
  CHECK(contains(advice("unknown"), "; set 'na_values: [\"unknown\"]'"));
  CHECK(contains(advice("1,5"), "; set 'decimal: \",\"' if the comma is a decimal comma"));
  CHECK(contains(advice("1,500"), "; set 'thousands: \",\"' if the comma separates thousands"));
  CHECK(contains(advice("1.500,5"), "'decimal: \",\"' and 'thousands: \".\"'"));
  CHECK(contains(advice("1.500", ", decimal: \",\""),
                 "set 'thousands: \".\"' if the point separates thousands"));
  CHECK(advice("1e300").ends_with("found '1e300'; float32 holds numbers up to 3.4e38"));
}

TEST_CASE_FIXTURE(Run, "columns that are constant or empty are float32") {
  const auto data = train("a,b,y\n0.1,,0\n0.1,,1\n", kHead + ", fill: 0", {{"x", {2}}});
  REQUIRE(data->stored_form(0).has_value());
  CHECK(data->stored_form(0)->dtype == DType::float32);
}

TEST_CASE_FIXTURE(Run, "facts about the data record how columns are read") {
  train("d,p,y\n01/31/2026,$5,0\n02/01/2026,,1\n",
        kHead + ", dates: {d: [days]}, amounts: p, indicators: p, fill: 0", {{"x", {3}}});
  const DataFacts facts = DataFacts::from_json(Json::parse(spec.facts.to_json().dump()));
  CHECK(facts == spec.facts);
  CHECK(facts.source.readings.at("p") == ColumnReading{true, {}, {}, true});
  CHECK(facts.source.readings.at("d") == ColumnReading{false, {DatePart::days}, DateForm{}, false});
  // Checkpoints are untrusted.
  for (const std::string reading : {"{\"dates\": [\"century\"], \"numbers\": \"year\"}",
                                    "{\"dates\": [\"days\"]}", "{\"dates\": 1}", "{\"amount\": 1}"})
    CHECK_THROWS_AS(SourceFacts::from_json(Json::parse("{\"readings\": {\"d\": " + reading + "}}")),
                    UserError);
}

}  // namespace dtrain::test
