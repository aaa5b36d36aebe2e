// Formats of dates and amounts in tables.
#include <optional>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "data/readers/csv/dates.h"
#include "data/readers/csv/values.h"

namespace dtrain::test {

namespace {

std::string shown(const std::string& text, const DateForm& form = {}) {
  const auto date = read_date(text, form);
  if (!date) return "none";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{} {}", date->year, date->month, date->day, date->hour,
                     date->minute, date->second, date->offset);
}

std::optional<double> part(const std::string& text, DatePart wanted, const DateForm& form = {}) {
  const auto date = read_date(text, form);
  return date ? part_of_date(*date, wanted) : std::nullopt;
}

DateForm form_of(const std::vector<std::string>& texts, bool day_first = false) {
  DateFormFinder all;
  for (const std::string& text : texts) {
    DateFormFinder one;
    one.add(text);
    all.merge(one);
  }
  return all.form(day_first);
}

}  // namespace

TEST_CASE("dates and times are read in common formats") {
  const std::string day = "2026-01-31 00:00:0 0";
  for (const std::string text :
       {"2026-01-31", "2026/1/31", "2026.01.31", "31.01.2026", "31.1.26", "01/31/2026", "1/31/26",
        "Jan 31 2026", "January 31, 2026", "31 January 2026", "31-Jan-2026", "31-JAN-26", "2026-Jan-31",
        "Sat, 31 Jan 2026", "Jan. 31st, 2026"}) {
    CAPTURE(text);
    CHECK(shown(text) == day);
    CHECK(is_csv_date(text));
  }
  for (const std::string text :
       {"2026-01-31 15:04", "2026-01-31T15:04", "01/31/2026 3:04 PM", "31.01.2026, 15:04",
        "Jan 31 2026 15:04:00", "2026-01-31T15:04Z", "2026-01-31 15:04:00 UTC"})
    CHECK(shown(text) == "2026-01-31 15:04:0 0");
  CHECK(shown("2026-01-31T15:04:05.25+05:30") == "2026-01-31 15:04:5.25 330");
  CHECK(shown("2026-01-31 15:04:05 -0130") == "2026-01-31 15:04:5 -90");
  CHECK(shown("2026-01-31 12:00 AM") == "2026-01-31 00:00:0 0");
  CHECK(shown("January 2000") == "2000-01-01 00:00:0 0");
  CHECK(shown("2000-03") == "2000-03-01 00:00:0 0");
  CHECK(shown("Sept") == "0000-09-00 00:00:0 0");
  CHECK(shown("2024-02-29") == "2024-02-29 00:00:0 0");
  for (const std::string text :
       {"",           "-",           "2023-02-29",          "2026-13-01",    "31/31/2026",
        "32.01.2026", "2026-01-31x", "2026-01-31 25:00",    "2026-01-31 12", "0000-01-01",
        "Monday",     "May be",      "Marching 5 2000",     "12:00",         "red",
        "1.2.3.4",    "31.01-2026",  "2026-01-31 13:00 PM", "Jan 2000 2001", "5 6 2000"}) {
    CAPTURE(text);
    CHECK(shown(text) == "none");
    CHECK(!is_csv_date(text));
  }
  CHECK(!is_csv_date("20260131"));
  CHECK(!is_csv_date("January"));
}

TEST_CASE("parts of a date are extracted") {
  const std::string text = "2026-01-31T15:45:30+01:00";
  CHECK(part(text, DatePart::year) == 2026);
  CHECK(part(text, DatePart::month) == 1);
  CHECK(part(text, DatePart::day) == 31);
  CHECK(part(text, DatePart::weekday) == 5);
  CHECK(part(text, DatePart::hour) == 15);
  CHECK(part(text, DatePart::minute) == 45);
  CHECK(part(text, DatePart::day_of_year) == 31);
  CHECK(part("2024-12-31", DatePart::day_of_year) == 366);
  CHECK(part("1970-01-01", DatePart::days) == 0);
  CHECK(part("1969-12-31", DatePart::days) == -1);
  CHECK(part("2026-01-31", DatePart::days) == 20484);
  CHECK(part("2026-01-31 18:00", DatePart::days) == 20484.75);
  CHECK(part("2026-01-31 18:00-06:00", DatePart::days) == 20485);
  CHECK(part("2026-02-02", DatePart::weekday) == 0);
  CHECK(part("March", DatePart::month) == 3);
  for (const DatePart other :
       {DatePart::year, DatePart::day, DatePart::days, DatePart::weekday, DatePart::hour})
    CHECK(!part("March", other));
}

TEST_CASE("a date column's format is inferred from its values") {
  CHECK(!form_of({"01/02/2026", "12/11/2026"}).day_first);
  CHECK(form_of({"01/02/2026", "12/11/2026"}, true).day_first);
  CHECK(form_of({"01/02/2026", "13/11/2026"}).day_first);
  CHECK(!form_of({"01/02/2026", "11-13-2026 12:00"}, true).day_first);
  CHECK(shown("02/01/2026", {.day_first = true}) == "2026-01-02 00:00:0 0");
  CHECK(shown("02/01/2026") == "2026-02-01 00:00:0 0");
  CHECK(form_of({"20260131", "19991231"}).numbers == DateNumbers::yyyymmdd);
  CHECK(form_of({"20260131", "20261331"}).numbers == DateNumbers::seconds);
  CHECK(form_of({"1999", "2026"}).numbers == DateNumbers::year);
  CHECK(form_of({"1769817600", "0"}).numbers == DateNumbers::seconds);
  CHECK(form_of({"1769817600000", "0"}).numbers == DateNumbers::milliseconds);
  CHECK(form_of({"2026-01-31", "20260201"}).numbers == DateNumbers::yyyymmdd);
  CHECK(form_of({"2026-01", "2026"}).numbers == DateNumbers::year);
  CHECK(form_of({"17", "2026-01-31"}).numbers == DateNumbers::none);
  CHECK(form_of({"1769817600", "soon"}).numbers == DateNumbers::seconds);
  CHECK(shown("17", {.numbers = DateNumbers::none}) == "none");
  CHECK(shown("20260131", {.numbers = DateNumbers::yyyymmdd}) == "2026-01-31 00:00:0 0");
  CHECK(shown("2026", {.numbers = DateNumbers::year}) == "2026-01-01 00:00:0 0");
  CHECK(shown("1769871845.5") == "2026-01-31 15:04:5.5 0");
  CHECK(shown("-1") == "1969-12-31 23:59:59 0");
  CHECK(shown("1769871845000", {.numbers = DateNumbers::milliseconds}) == "2026-01-31 15:04:5 0");
  CHECK(shown("253402300799000", {.numbers = DateNumbers::milliseconds}) == "9999-12-31 23:59:59 0");
  CHECK(shown("1e30") == "none");
  CHECK(part("1769871600", DatePart::days) == 20484.625);
  CHECK(shown("2026-01-31", {.numbers = DateNumbers::yyyymmdd}) == "2026-01-31 00:00:0 0");
}

TEST_CASE("amounts are read with currencies, thousands separators, percent signs and parentheses") {
  const CsvValues plain, german({',', {}, {}}), both({',', '.', {}});
  for (const std::string text :
       {"$62,199", "62,199", "$ 62,199.00", "USD 62,199", "62,199 EUR", "\u20ac62,199", "62 199 \u20ac",
        "62\u00a0199", "CHF 62'199", "US$62,199", "62199"}) {
    CAPTURE(text);
    CHECK(plain.amount(text) == 62199);
  }
  CHECK(plain.amount("4.2%") == 4.2);
  CHECK(plain.amount("4.2 %") == 4.2);
  CHECK(plain.amount("($1,234.50)") == -1234.5);
  CHECK(plain.amount("-$5") == -5);
  CHECK(plain.amount("$-5") == -5);
  CHECK(plain.amount("\u00a3.5") == 0.5);
  CHECK(plain.amount("1,23,456") == 123456);
  CHECK(german.amount("1.234,50 EUR") == 1234.5);
  CHECK(both.amount("1.234,50 EUR") == 1234.5);
  CHECK(!german.amount("$1,234.50"));
  for (const std::string text : {"", "$", "%", "()", "5M", "10k", "12,34", "1,2345", "5 kg", "EUR", "--5",
                                 "$5%", "(-5)", "5 5", "red", "1,234,56"}) {
    CAPTURE(text);
    CHECK(!plain.amount(text));
  }
}

TEST_CASE(
    "numbers are read with the decimal point, thousands separator and names of missing values of a file") {
  const CsvValues german({',', '.', {"k.A.", "-999"}});
  CHECK(german.number("1.234.567,25") == 1234567.25);
  CHECK(german.number("-0,5") == -0.5);
  CHECK(german.number("1,5e3") == 1500);
  CHECK(german.number("12") == 12);
  CHECK(!german.number("31.01.2026"));
  CHECK(!german.number("1.5"));
  CHECK(!german.number("1,5,5"));
  CHECK(german.is_gap("k.A."));
  CHECK(german.is_gap("-999,0"));
  CHECK(german.is_missing_name("k.A."));
  CHECK(!german.is_name("k.A."));
  CHECK(!german.is_name("1.234,5"));
  CHECK(german.is_gap(""));
  CHECK(!CsvValues({',', {}, {}}).number("1.234"));
}

}  // namespace dtrain::test
