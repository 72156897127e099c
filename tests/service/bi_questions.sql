-- What Metabase, Grafana and Superset send to MySQL for their simplest chart of each kind, about the tables of
-- asked_shop.py. A line "-- name: rows" begins a question; rows is how many the answer has.
--
-- Metabase: written from the formulas of its MySQL driver, src/metabase/driver/mysql.clj of 2025 (with driver-api), and
-- its probe of tables, simple-select-probe-query. Grafana: from pkg/tsdb/mysql/macros.go (MySQL macros) and
-- public/app/plugins/datasource/mysql/sqlUtil.ts and mySqlMetaQuery.ts of 2023 (Grafana 10). Neither was run.
-- Superset: from superset/db_engine_specs/mysql.py of 6.1.0, which test_superset.py runs.

-- Metabase, a number: 1
SELECT COUNT(*) AS `count` FROM `users`;

-- Metabase, a bar chart by category: 2
SELECT `users`.`sex` AS `sex`, COUNT(*) AS `count` FROM `users` GROUP BY `users`.`sex` ORDER BY `users`.`sex` ASC;

-- Metabase, a bar chart of a sum: 2
SELECT `users`.`sex` AS `sex`, SUM(`users`.`age`) AS `sum` FROM `users` GROUP BY `users`.`sex` ORDER BY `sum` DESC, `users`.`sex` ASC;

-- Metabase, an average with a filter: 1
SELECT AVG(`users`.`age`) AS `avg` FROM `users` WHERE `users`.`sex` = 'f';

-- Metabase, a line chart by day: 90
SELECT DATE(`orders`.`day`) AS `day`, COUNT(*) AS `count` FROM `orders` GROUP BY DATE(`orders`.`day`) ORDER BY DATE(`orders`.`day`) ASC;

-- Metabase, a line chart by month: 3
SELECT STR_TO_DATE(CONCAT(DATE_FORMAT(`orders`.`day`, '%Y-%m'), '-01'), '%Y-%m-%d') AS `day`, COUNT(*) AS `count` FROM `orders` GROUP BY STR_TO_DATE(CONCAT(DATE_FORMAT(`orders`.`day`, '%Y-%m'), '-01'), '%Y-%m-%d') ORDER BY STR_TO_DATE(CONCAT(DATE_FORMAT(`orders`.`day`, '%Y-%m'), '-01'), '%Y-%m-%d') ASC;

-- Metabase, a line chart by year: 1
SELECT MAKEDATE(YEAR(`orders`.`day`), 1) AS `day`, COUNT(*) AS `count` FROM `orders` GROUP BY MAKEDATE(YEAR(`orders`.`day`), 1) ORDER BY MAKEDATE(YEAR(`orders`.`day`), 1) ASC;

-- Metabase, a line chart by week: 14
SELECT STR_TO_DATE(CONCAT(YEARWEEK(`orders`.`day`), ' Sunday'), '%X%V %W') AS `day`, COUNT(*) AS `count` FROM `orders` GROUP BY STR_TO_DATE(CONCAT(YEARWEEK(`orders`.`day`), ' Sunday'), '%X%V %W') ORDER BY STR_TO_DATE(CONCAT(YEARWEEK(`orders`.`day`), ' Sunday'), '%X%V %W') ASC;

-- Metabase, a line chart by quarter: 1
SELECT STR_TO_DATE(CONCAT(YEAR(`orders`.`day`), '-', ((QUARTER(`orders`.`day`) * 3) - 2), '-01'), '%Y-%m-%d') AS `day`, COUNT(*) AS `count` FROM `orders` GROUP BY STR_TO_DATE(CONCAT(YEAR(`orders`.`day`), '-', ((QUARTER(`orders`.`day`) * 3) - 2), '-01'), '%Y-%m-%d') ORDER BY STR_TO_DATE(CONCAT(YEAR(`orders`.`day`), '-', ((QUARTER(`orders`.`day`) * 3) - 2), '-01'), '%Y-%m-%d') ASC;

-- Metabase, a line chart of a date by day: 90
SELECT `orders`.`day` AS `day`, COUNT(*) AS `count` FROM `orders` GROUP BY `orders`.`day` ORDER BY `orders`.`day` ASC;

-- Metabase, a bar chart by day of the week: 7
SELECT DAYOFWEEK(`orders`.`day`) AS `day`, COUNT(*) AS `count` FROM `orders` GROUP BY DAYOFWEEK(`orders`.`day`) ORDER BY DAYOFWEEK(`orders`.`day`) ASC;

-- Metabase, the previous 30 days: 1
SELECT COUNT(*) AS `count` FROM `orders` WHERE (`orders`.`day` >= DATE(DATE_ADD(NOW(6), INTERVAL -30 day))) AND (`orders`.`day` < DATE(NOW(6)));

-- Metabase, a share of rows: 1
SELECT CAST(SUM(CASE WHEN `users`.`age` < 30 THEN 1 ELSE 0.0 END) AS DOUBLE) / NULLIF(COUNT(*), 0) AS `share` FROM `users`;

-- Metabase, whether a table may be asked about: 0
SELECT TRUE AS `_` FROM `shop`.`users` WHERE 1 <> 1 LIMIT 0;

-- Metabase, a histogram: 10
SELECT FLOOR((`users`.`age` / 10.0)) * 10.0 AS `age`, COUNT(*) AS `count` FROM `users` GROUP BY FLOOR((`users`.`age` / 10.0)) * 10.0 ORDER BY FLOOR((`users`.`age` / 10.0)) * 10.0 ASC;

-- Metabase, a question on a saved question: 2
SELECT `source`.`sex` AS `sex`, COUNT(*) AS `count` FROM (SELECT `users`.`uid` AS `uid`, `users`.`age` AS `age`, `users`.`sex` AS `sex` FROM `users`) AS `source` GROUP BY `source`.`sex` ORDER BY `source`.`sex` ASC;

-- Metabase, the values of a filter: 2
SELECT `users`.`sex` AS `sex` FROM `users` GROUP BY `users`.`sex` ORDER BY `users`.`sex` ASC LIMIT 1000;

-- Grafana, a stat panel: 1
SELECT COUNT(*) AS "value" FROM shop.users LIMIT 50;

-- Grafana, a table panel: 2
SELECT sex, COUNT(*) FROM shop.users GROUP BY sex LIMIT 50;

-- Grafana, a time series by $__timeGroup(day, '1d') and $__timeFilter(day): 11
SELECT UNIX_TIMESTAMP(day) DIV 86400 * 86400 AS "time", COUNT(*) AS "value" FROM orders WHERE day BETWEEN FROM_UNIXTIME(1767225600) AND FROM_UNIXTIME(1768089600) GROUP BY 1 ORDER BY 1;

-- Grafana, a time series by $__timeGroup(day, '1w') with a range inside days: 2
SELECT UNIX_TIMESTAMP(day) DIV 604800 * 604800 AS "time", COUNT(*) AS "value" FROM orders WHERE day BETWEEN FROM_UNIXTIME(1767225671) AND FROM_UNIXTIME(1768089611) GROUP BY 1 ORDER BY 1;

-- Grafana, a time series by $__time(day): 11
SELECT UNIX_TIMESTAMP(day) as time_sec, COUNT(*) AS value FROM orders WHERE day BETWEEN FROM_UNIXTIME(1767225600) AND FROM_UNIXTIME(1768089600) GROUP BY day ORDER BY day;

-- Grafana, a time series by a second column: 6
SELECT UNIX_TIMESTAMP(day) DIV 86400 * 86400 AS "time", sex AS metric, COUNT(*) AS value FROM orders JOIN users USING (uid) WHERE day BETWEEN FROM_UNIXTIME(1767225600) AND FROM_UNIXTIME(1767398400) GROUP BY 1, 2 ORDER BY 1;

-- Grafana, a range from before 1970: 1
SELECT COUNT(*) AS value FROM orders WHERE day BETWEEN DATE_ADD(FROM_UNIXTIME(0), INTERVAL -100 SECOND) AND FROM_UNIXTIME(1768089600);

-- Grafana, a bar chart with a filter: 1
SELECT sex AS metric, AVG(age) AS value FROM users WHERE sex IN ('f') GROUP BY sex ORDER BY sex;

-- Grafana, the values of a variable: 2
SELECT DISTINCT sex FROM users;

-- Superset, a bar chart: 2
SELECT `sex` AS `sex`, COUNT(*) AS `count` FROM `users` GROUP BY `sex` ORDER BY `count` DESC LIMIT 10000;

-- Superset, a line chart by day: 90
SELECT DATE(`day`) AS `__timestamp`, COUNT(*) AS `count` FROM `orders` WHERE `day` >= STR_TO_DATE('2026-01-01 00:00:00.000000', '%Y-%m-%d %H:%i:%s.%f') AND `day` < STR_TO_DATE('2026-04-01 00:00:00.000000', '%Y-%m-%d %H:%i:%s.%f') GROUP BY DATE(`day`) ORDER BY `count` DESC LIMIT 10000;

-- Superset, a line chart by month: 3
SELECT DATE(DATE_SUB(`day`, INTERVAL DAYOFMONTH(`day`) - 1 DAY)) AS `__timestamp`, SUM(`amount`) AS `SUM(amount)` FROM `orders` GROUP BY DATE(DATE_SUB(`day`, INTERVAL DAYOFMONTH(`day`) - 1 DAY)) ORDER BY `SUM(amount)` DESC LIMIT 10000;

-- Superset, a line chart by week: 14
SELECT DATE(DATE_SUB(`day`, INTERVAL DAYOFWEEK(`day`) - 1 DAY)) AS `__timestamp`, COUNT(*) AS `count` FROM `orders` GROUP BY DATE(DATE_SUB(`day`, INTERVAL DAYOFWEEK(`day`) - 1 DAY)) ORDER BY `count` DESC LIMIT 10000;

-- Superset, a line chart by week from Monday: 14
SELECT DATE(DATE_SUB(`day`, INTERVAL DAYOFWEEK(DATE_SUB(`day`, INTERVAL 1 DAY)) - 1 DAY)) AS `__timestamp`, COUNT(*) AS `count` FROM `orders` GROUP BY DATE(DATE_SUB(`day`, INTERVAL DAYOFWEEK(DATE_SUB(`day`, INTERVAL 1 DAY)) - 1 DAY)) ORDER BY `count` DESC LIMIT 10000;

-- Superset, a line chart by quarter: 1
SELECT MAKEDATE(YEAR(`day`), 1) + INTERVAL QUARTER(`day`) QUARTER - INTERVAL 1 QUARTER AS `__timestamp`, COUNT(*) AS `count` FROM `orders` GROUP BY MAKEDATE(YEAR(`day`), 1) + INTERVAL QUARTER(`day`) QUARTER - INTERVAL 1 QUARTER ORDER BY `count` DESC LIMIT 10000;

-- Superset, a line chart by year: 1
SELECT DATE(DATE_SUB(`day`, INTERVAL DAYOFYEAR(`day`) - 1 DAY)) AS `__timestamp`, COUNT(*) AS `count` FROM `orders` GROUP BY DATE(DATE_SUB(`day`, INTERVAL DAYOFYEAR(`day`) - 1 DAY)) ORDER BY `count` DESC LIMIT 10000;

-- Superset, a virtual dataset: 2
SELECT * FROM (SELECT sex, COUNT(*) AS n FROM users GROUP BY sex) AS `virtual_table` LIMIT 1000;

-- Superset, a sum over a virtual dataset: 2
SELECT `sex` AS `sex`, SUM(`n`) AS `SUM(n)` FROM (SELECT sex, COUNT(*) AS n FROM users GROUP BY sex) AS `virtual_table` GROUP BY `sex` ORDER BY `SUM(n)` DESC LIMIT 100;
