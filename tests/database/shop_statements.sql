-- Ordinary statements over a shop, as analysts and BI tools write them: one per line. Those that are refused stand at the end,
-- each below the reason.
-- analysts: counting
SELECT COUNT(*) FROM customers;
SELECT COUNT(1) AS n FROM customers;
SELECT count(*) as total_customers from customers where age >= 30 and age < 40;
SELECT COUNT(uid) FROM customers;
SELECT COUNT(DISTINCT uid) FROM customers;
SELECT COUNT(age) FROM customers WHERE country = 'DE';
SELECT COUNT(*) FROM customers WHERE plan = 'premium' OR newsletter;
SELECT COUNT(*) FROM customers WHERE NOT newsletter;
SELECT COUNT(*) FROM customers WHERE newsletter = TRUE AND gender <> 'm';
SELECT COUNT(*) FROM customers WHERE newsletter IS TRUE;
SELECT COUNT(*) FROM customers WHERE plan IN ('basic', 'premium') AND country NOT IN ('FR', 'IT');
SELECT COUNT(*) FROM customers WHERE age BETWEEN 25 AND 34 AND income > 50000;
SELECT COUNT(*) FROM customers WHERE plan LIKE 'p%';
SELECT COUNT(*) FROM customers WHERE plan ILIKE '%REE';
SELECT COUNT(*) FROM customers WHERE lower(country) = 'de';
SELECT COUNT(*) FROM customers WHERE upper(plan) = 'FREE';
SELECT COUNT(*) FROM customers WHERE regexp_matches(plan, '^(free|basic)$');
SELECT COUNT(*) FROM customers WHERE starts_with(plan, 'pre');
SELECT COUNT(*) FROM customers WHERE age % 10 = 0;
SELECT COUNT(*) FROM customers WHERE plan = 'gold';
SELECT COUNT(*) FROM customers WHERE age > 150;
SELECT COUNT(*) FROM customers WHERE age IN (30, 40, 500);
SELECT COUNT(*) FILTER (WHERE plan = 'premium') AS premium, COUNT(*) AS everybody FROM customers;
SELECT COUNT_IF(age < 30) AS young, COUNT_IF(age >= 60) AS old FROM customers;
SELECT SUM(CASE WHEN plan = 'premium' THEN 1 ELSE 0 END) AS premium FROM customers;
SELECT SUM(IF(newsletter, 1, 0)) AS subscribed FROM customers;
SELECT COUNT(CASE WHEN age < 30 THEN 1 END) AS young FROM customers;
SELECT SUM(newsletter::INT) FROM customers;
SELECT AVG(CAST(newsletter AS INTEGER)) AS share FROM customers;
SELECT 100.0 * COUNT_IF(newsletter) / COUNT(*) AS percent FROM customers;
SELECT ROUND(100.0 * SUM(CASE WHEN gender = 'f' THEN 1 ELSE 0 END) / COUNT(*), 2) AS percent_f FROM customers;
SELECT COUNT(*) % 7 AS rest FROM customers;
SELECT COUNT(*) - COUNT_IF(newsletter) AS not_subscribed FROM customers;
SELECT COUNT(*) FROM customers WHERE 1 = 1;
SELECT COUNT(*) FROM customers WHERE age >= 18 + 12;
SELECT COUNT(*) FROM customers WHERE age / 2 > 20;
SELECT COUNT(*) FROM customers WHERE income * 2 <= 80000;
-- sums and averages
SELECT AVG(age) FROM customers;
SELECT AVG(age) AS mean_age, SUM(income) AS total_income FROM customers WHERE country = 'FR';
SELECT SUM(income) / COUNT(*) FROM customers;
SELECT AVG(income) FILTER (WHERE plan = 'premium') - AVG(income) FILTER (WHERE plan = 'free') AS gap FROM customers;
SELECT STDDEV(age), VAR_POP(age), VARIANCE(age) FROM customers;
SELECT AVG(income / 1000.0) AS thousands FROM customers;
SELECT AVG(CASE WHEN income > 50000 THEN 50000 ELSE income END) FROM customers;
SELECT AVG(LEAST(income, 50000)) FROM customers;
SELECT SUM(GREATEST(age - 30, 0)) FROM customers;
SELECT AVG(ABS(age - 40)) FROM customers;
SELECT AVG(SQRT(age)) FROM customers;
SELECT CAST(AVG(age) AS INTEGER) FROM customers;
SELECT COALESCE(AVG(income), 0) FROM customers WHERE plan = 'basic';
SELECT ROUND(AVG(age), 1) AS age, ROUND(AVG(income)) AS income FROM customers;
SELECT SQRT(VAR_POP(age)) FROM customers;
SELECT AVG(age * 12) AS months FROM customers;
SELECT SUM(income * newsletter::INT) FROM customers;
SELECT AVG(age), AVG(income), COUNT(*) FROM customers HAVING COUNT(*) > 10;
-- groups
SELECT plan, COUNT(*) FROM customers GROUP BY plan;
SELECT plan, COUNT(*) AS n FROM customers GROUP BY 1 ORDER BY 2 DESC;
SELECT country, plan, COUNT(*) AS n FROM customers GROUP BY country, plan ORDER BY country, plan;
SELECT country, AVG(age) AS age FROM customers GROUP BY country ORDER BY age DESC;
SELECT gender, AVG(income) FROM customers WHERE age > 30 GROUP BY gender;
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) FROM customers GROUP BY decade ORDER BY decade;
SELECT age // 10 AS decade, COUNT(*) FROM customers GROUP BY ALL ORDER BY ALL;
SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS band, COUNT(*) FROM customers GROUP BY band;
SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan HAVING COUNT(*) > 100;
SELECT plan, COUNT(*) AS n FROM customers WHERE plan <> 'free' GROUP BY plan;
SELECT newsletter, plan, COUNT(*) FROM customers GROUP BY newsletter, plan;
SELECT country, COUNT(*) AS n FROM customers GROUP BY country ORDER BY n DESC LIMIT 3;
SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan ORDER BY n DESC LIMIT 2 OFFSET 1;
SELECT DISTINCT plan FROM customers;
SELECT DISTINCT country FROM customers ORDER BY country;
SELECT plan, gender, COUNT(*) FROM customers GROUP BY ROLLUP (plan, gender);
SELECT plan, gender, COUNT(*) FROM customers GROUP BY CUBE (plan, gender);
SELECT plan, gender, COUNT(*) FROM customers GROUP BY GROUPING SETS ((plan), (gender), ());
SELECT lower(plan) AS p, COUNT(*) FROM customers GROUP BY lower(plan);
SELECT upper(country) AS c, COUNT(*) FROM customers GROUP BY c;
SELECT plan || '!' AS loud, COUNT(*) FROM customers GROUP BY loud;
SELECT age, COUNT(*) FROM customers WHERE age BETWEEN 30 AND 33 GROUP BY age;
SELECT age > 40 AS older, COUNT(*) FROM customers GROUP BY older;
SELECT IF(income > 40000, 'high', 'low') AS level, COUNT(*), AVG(age) FROM customers GROUP BY level;
-- dates
SELECT COUNT(*) FROM customers WHERE signup >= '2023-07-01';
SELECT COUNT(*) FROM customers WHERE signup >= DATE '2023-03-01' AND signup < DATE '2023-04-01';
SELECT COUNT(*) FROM customers WHERE signup BETWEEN DATE '2023-01-01' AND DATE '2023-01-01' + INTERVAL 30 DAY;
SELECT YEAR(signup) AS y, COUNT(*) FROM customers GROUP BY y;
SELECT MONTH(signup) AS m, COUNT(*) FROM customers GROUP BY m ORDER BY m;
SELECT EXTRACT(month FROM signup) AS m, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1;
SELECT DATE_TRUNC('month', signup) AS m, COUNT(*) FROM customers GROUP BY 1 ORDER BY 1;
SELECT DATE_TRUNC('quarter', signup) AS q, AVG(age) FROM customers GROUP BY q ORDER BY q;
SELECT strftime(signup, '%Y-%m') AS month, COUNT(*) FROM customers GROUP BY month ORDER BY month;
SELECT DAYOFWEEK(signup) AS d, COUNT(*) FROM customers GROUP BY d ORDER BY d;
SELECT QUARTER(signup) AS q, plan, COUNT(*) FROM customers GROUP BY q, plan;
SELECT COUNT(*) FROM customers WHERE YEAR(signup) = 2023 AND MONTH(signup) IN (6, 7, 8);
SELECT COUNT(*) FROM customers WHERE signup > TIMESTAMP '2023-06-30 00:00:00';
SELECT COUNT(*) FROM customers WHERE date_part('month', signup) = 12;
SELECT monthname(signup) AS m, COUNT(*) FROM customers GROUP BY m;
-- quantiles and pairs
SELECT MEDIAN(age) FROM customers;
SELECT plan, MEDIAN(age) FROM customers GROUP BY plan;
SELECT QUANTILE_CONT(age, 0.25), QUANTILE_CONT(age, 0.75) FROM customers WHERE country = 'DE';
SELECT QUANTILE_DISC(income, 0.9) FROM customers;
SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) FROM customers;
SELECT PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY age) FROM customers;
SELECT MODE(plan) FROM customers;
SELECT CORR(age, income) FROM customers;
SELECT COVAR_POP(age, income), COVAR_SAMP(age, income) FROM customers;
SELECT REGR_SLOPE(income, age), REGR_INTERCEPT(income, age), REGR_R2(income, age) FROM customers;
SELECT MEDIAN(age) FILTER (WHERE plan = 'free') FROM customers;
-- orders and joins
SELECT COUNT(*), SUM(amount), AVG(amount) FROM orders;
SELECT category, SUM(amount) AS revenue FROM orders GROUP BY category ORDER BY revenue DESC;
SELECT status, COUNT(*) FROM orders GROUP BY status;
SELECT SUM(amount) FILTER (WHERE status = 'paid') AS paid FROM orders;
SELECT SUM(amount * items) FROM orders;
SELECT SUM(amount) FROM orders WHERE category = 'books' AND day >= '2023-06-01';
SELECT DATE_TRUNC('month', day) AS month, SUM(amount) AS revenue FROM orders GROUP BY month ORDER BY month;
SELECT COUNT(*) FROM customers JOIN orders USING (uid) WHERE age < 30;
SELECT c.plan, SUM(o.amount) AS revenue FROM customers c JOIN orders o ON c.uid = o.uid GROUP BY c.plan;
SELECT AVG(o.amount) FROM customers AS c INNER JOIN orders AS o ON o.uid = c.uid WHERE c.country = 'DE' AND o.status = 'paid';
SELECT c.country, COUNT(*) AS n FROM customers c, orders o WHERE c.uid = o.uid GROUP BY c.country;
SELECT region, COUNT(*) AS n FROM customers JOIN countries USING (country) GROUP BY region;
SELECT d.department, SUM(amount) FROM orders o JOIN departments d ON o.category = d.category GROUP BY d.department;
SELECT SUM(amount * margin) AS profit FROM orders JOIN departments USING (category);
SELECT r.region, SUM(o.amount) FROM customers c JOIN orders o USING (uid) JOIN countries r USING (country) GROUP BY r.region;
SELECT MEDIAN(amount) FROM orders JOIN customers USING (uid) WHERE plan = 'premium';
SELECT COUNT(*) FROM customers NATURAL JOIN orders WHERE gender = 'f';
SELECT CORR(c.age, o.amount) FROM customers c JOIN orders o USING (uid);
SELECT c.plan, o.category, COUNT(*) FROM customers c JOIN orders o USING (uid) GROUP BY 1, 2;
SELECT COUNT(*) FROM orders WHERE uid IN (SELECT uid FROM customers WHERE plan = 'premium');
SELECT SUM(amount) FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.uid = o.uid AND c.age > 60);
-- wrapped and compound
WITH adults AS (SELECT * FROM customers WHERE age >= 30) SELECT plan, COUNT(*) FROM adults GROUP BY plan;
WITH t AS (SELECT age AS years, plan FROM customers) SELECT AVG(years) FROM t WHERE plan = 'free';
SELECT plan, n FROM (SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan) t WHERE n > 10 ORDER BY n DESC;
SELECT plan, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM customers) AS percent FROM customers GROUP BY plan;
SELECT plan, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS percent FROM customers GROUP BY plan;
SELECT MONTH(signup) AS m, COUNT(*) AS n, SUM(COUNT(*)) OVER (ORDER BY MONTH(signup)) AS running FROM customers GROUP BY m ORDER BY m;
SELECT MONTH(signup) AS m, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY MONTH(signup)) AS growth FROM customers GROUP BY m ORDER BY m;
SELECT 'young' AS band, COUNT(*) AS n FROM customers WHERE age < 40 UNION ALL SELECT 'old', COUNT(*) FROM customers WHERE age >= 40;
SELECT COUNT(*) FROM customers WHERE age > (SELECT AVG(age) FROM customers);
SELECT COUNT(*) FROM (SELECT * FROM (SELECT age, plan FROM customers WHERE age < 60) a WHERE plan = 'basic') b;
-- Superset
SELECT plan AS plan, COUNT(*) AS count FROM main.customers GROUP BY plan ORDER BY count DESC LIMIT 10000;
SELECT DATE_TRUNC('month', signup) AS signup, plan AS plan, COUNT(*) AS count FROM main.customers WHERE signup >= '2023-01-01' AND signup < '2024-01-01' GROUP BY DATE_TRUNC('month', signup), plan ORDER BY count DESC LIMIT 10000;
SELECT COUNT(*) AS count FROM (SELECT * FROM customers WHERE age > 20) AS virtual_table LIMIT 50000;
SELECT country AS country, SUM(income) AS "SUM(income)" FROM main.customers WHERE (plan IN ('premium')) GROUP BY country ORDER BY "SUM(income)" DESC LIMIT 1000;
-- Metabase
SELECT "main"."customers"."plan" AS "plan", COUNT(*) AS "count" FROM "main"."customers" GROUP BY "main"."customers"."plan" ORDER BY "main"."customers"."plan" ASC;
SELECT FLOOR(("customers"."age" / 10.0)) * 10.0 AS "age", COUNT(*) AS "count" FROM "customers" GROUP BY FLOOR(("customers"."age" / 10.0)) * 10.0 ORDER BY FLOOR(("customers"."age" / 10.0)) * 10.0 ASC;
SELECT "source"."plan" AS "plan", AVG("source"."age") AS "avg" FROM (SELECT "customers"."plan" AS "plan", "customers"."age" AS "age" FROM "customers" WHERE "customers"."age" > 25) AS "source" GROUP BY "source"."plan" ORDER BY "source"."plan" ASC LIMIT 2000;
SELECT CAST(SUM(CASE WHEN "customers"."plan" = 'premium' THEN 1 ELSE 0.0 END) AS FLOAT) / CAST(COUNT(*) AS FLOAT) AS "share" FROM "customers";
-- Grafana
SELECT date_trunc('week', signup) AS "time", COUNT(*) AS "signups" FROM customers WHERE signup BETWEEN '2023-02-01' AND '2023-03-31' GROUP BY 1 ORDER BY 1;
SELECT date_trunc('month', signup) AS time, plan AS metric, COUNT(*) AS value FROM customers GROUP BY time, metric ORDER BY time;
-- Tableau
SELECT "customers"."plan" AS "plan", SUM(1) AS "sum:Number of Records:ok" FROM "customers" GROUP BY 1;
SELECT "customers"."country" AS "country", AVG(CAST("customers"."age" AS DOUBLE)) AS "avg:age:ok" FROM "customers" WHERE ("customers"."gender" = 'f') GROUP BY "customers"."country";
SELECT EXTRACT(YEAR FROM "customers"."signup") AS "yr:signup:ok", SUM("customers"."age") AS "sum:age:ok" FROM "customers" GROUP BY 1;
SELECT SUM(1) AS "COL" FROM "customers" HAVING COUNT(1) > 0;
-- answers of answers, and functions of groups
SELECT AVG(n) FROM (SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan) AS t;
WITH t AS (SELECT plan, SUM(income) AS total FROM customers GROUP BY plan) SELECT MAX(total), MIN(total), AVG(total), SUM(total) FROM t;
SELECT plan, n * 1.0 / (SELECT SUM(n) FROM (SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan) AS u) AS share FROM (SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan) AS t;
SELECT (SELECT COUNT(*) FROM orders) * 1.0 / (SELECT COUNT(*) FROM customers) AS orders_a_customer;
SELECT (SELECT COUNT(*) FROM customers), (SELECT SUM(amount) FROM orders WHERE items > 1);
WITH a AS (SELECT COUNT(*) AS n FROM customers), b AS (SELECT SUM(amount) AS m FROM orders) SELECT m / n AS revenue_a_customer FROM a, b;
WITH m AS (SELECT plan, gender, COUNT(*) AS n FROM customers GROUP BY 1, 2) SELECT plan, SUM(CASE WHEN gender = 'f' THEN n ELSE 0 END) AS women, SUM(n) FILTER (WHERE gender = 'm') AS men FROM m GROUP BY 1;
SELECT category, AVG(COUNT(*)) OVER (ORDER BY category ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS two FROM orders GROUP BY category ORDER BY category;
SELECT category, FIRST_VALUE(COUNT(*)) OVER (ORDER BY category) AS first, SUM(COUNT(*)) OVER (ORDER BY category ROWS UNBOUNDED PRECEDING) AS running FROM orders GROUP BY category;
SELECT EXP(AVG(LN(age))) AS geometric, LOG10(COUNT(*)), TRUNC(AVG(age)), COUNT_IF(age < 30) * 100 // COUNT(*) AS percent FROM customers;
SELECT REGR_COUNT(income, age), REGR_AVGX(income, age), REGR_AVGY(income, age), REGR_SXX(income, age), REGR_SYY(income, age), REGR_SXY(income, age) FROM customers;
SELECT UPPER(plan) AS plan, COUNT(*) FROM customers GROUP BY plan;
SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan ORDER BY CASE plan WHEN 'free' THEN 1 WHEN 'basic' THEN 2 ELSE 3 END, n LIMIT 2;
SELECT COALESCE(plan, 'all') AS plan, GROUPING(plan) AS g, COUNT(*) FROM customers GROUP BY ROLLUP (plan);
SELECT CASE WHEN GROUPING(plan) = 1 THEN 'all' ELSE plan END AS plan, gender, AVG(age) FROM customers GROUP BY CUBE (plan, gender);
SELECT PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY age DESC) FROM customers;
SELECT COUNT(*) FROM customers WHERE age > (SELECT MEDIAN(age) FROM customers) AND plan = ANY(['free', 'basic']);
SELECT VAR_SAMP(age), COUNTIF(age > 30), AVG(LOG10(age)) FROM customers FETCH FIRST 5 ROWS ONLY;
SELECT DAYOFMONTH(signup) AS d, COUNT(*) FROM customers WHERE signup >= '2023-03-01 00:00:00.000000' AND signup < '2023-04-01T00:00:00.000Z' GROUP BY d ORDER BY d;
-- outer joins, people without orders, public lists
SELECT COUNT(*) FROM customers c LEFT JOIN orders o USING (uid) WHERE o.uid IS NULL;
SELECT COUNT(*) FROM customers WHERE uid IN (SELECT uid FROM orders WHERE amount > 20);
SELECT COUNT(*) FROM customers FULL OUTER JOIN orders USING (uid);
SELECT COUNT(*) FROM customers WHERE uid NOT IN (SELECT uid FROM orders WHERE status = 'paid') AND age < 40;
SELECT c.plan, COUNT(*) AS n, COUNT(o.uid) AS orders, COALESCE(SUM(o.amount), 0) AS revenue FROM customers c LEFT JOIN orders o ON c.uid = o.uid GROUP BY c.plan ORDER BY revenue DESC;
SELECT c.country, AVG(o.amount) AS a FROM customers c LEFT JOIN orders o ON c.uid = o.uid AND o.status = 'paid' GROUP BY c.country;
SELECT c.plan, SUM(o.amount) / COUNT(DISTINCT c.uid) AS arpu FROM customers c LEFT JOIN orders o ON c.uid = o.uid GROUP BY c.plan;
SELECT o.category, COUNT(*) AS n, AVG(c.age) AS age FROM customers c LEFT JOIN orders o ON c.uid = o.uid GROUP BY o.category;
SELECT COALESCE(o.status, 'no order') AS status, COUNT(*) AS n FROM customers c LEFT JOIN orders o USING (uid) GROUP BY 1;
SELECT CASE WHEN o.uid IS NULL THEN 'no' ELSE 'yes' END AS buys, COUNT(*) AS n FROM customers c LEFT JOIN orders o ON o.uid = c.uid GROUP BY buys;
SELECT d.department, SUM(o.amount) AS s FROM orders o LEFT JOIN departments d ON o.category = d.category GROUP BY d.department;
SELECT COALESCE(d.department, 'other') AS department, SUM(o.amount * d.margin) AS profit FROM orders o LEFT JOIN departments d USING (category) GROUP BY 1;
SELECT d.department, COUNT(*) AS n FROM departments d JOIN orders o ON o.category = d.category GROUP BY d.department;
SELECT COUNT(*) FROM orders WHERE category NOT IN (SELECT category FROM departments WHERE margin > 0.3);
SELECT COUNT(*) FROM orders o WHERE EXISTS (SELECT 1 FROM departments d WHERE d.category = o.category AND d.margin > 0.2);
SELECT COUNT(*) FROM customers WHERE country IN (SELECT country FROM countries WHERE region = 'south');
SELECT r.region, AVG(c.age) AS a FROM customers c JOIN countries r ON c.country = r.country AND c.age > 30 GROUP BY r.region;
-- groups chosen by HAVING, pairs, arithmetic of quantiles, joined answers
SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan HAVING plan <> 'free' AND COUNT(*) > 5;
SELECT plan, country, COUNT(*) AS n FROM customers GROUP BY ALL HAVING country = 'DE' ORDER BY n DESC;
SELECT COUNT(*) FROM customers WHERE (plan, newsletter) IN (('free', TRUE), ('basic', FALSE));
SELECT COUNT(*) FROM customers WHERE age <> ALL ([20, 30, 40]) AND age <> ALL (ARRAY[21]);
SELECT GEOMEAN(age) FROM customers GROUP BY ();
SELECT COUNT(DISTINCT CASE WHEN age > 30 THEN uid END) FROM customers;
SELECT plan, COUNT(*) - LAG(COUNT(*), 1, 0) OVER (ORDER BY plan) AS d FROM customers GROUP BY plan;
SELECT t.* FROM (SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan) t;
SELECT plan, QUANTILE_CONT(age, 0.75) - QUANTILE_CONT(age, 0.25) AS iqr, COUNT(*) AS n FROM customers GROUP BY plan;
SELECT MEDIAN(age) / AVG(age) AS r, ROUND(PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) - MEDIAN(age), 1) AS d FROM customers;
SELECT p90 - p50 AS d FROM (SELECT QUANTILE_CONT(age, 0.9) AS p90, MEDIAN(age) AS p50 FROM customers) t;
SELECT a.plan, b.n * 100.0 / a.n AS rate FROM (SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan) a JOIN (SELECT plan, COUNT(*) AS n FROM customers WHERE newsletter GROUP BY plan) b USING (plan) ORDER BY rate DESC;
WITH a AS (SELECT country, COUNT(*) AS n FROM customers GROUP BY country), t AS (SELECT COUNT(*) AS n FROM customers) SELECT a.country, a.n, a.n * 100.0 / t.n AS pct FROM a CROSS JOIN t;
SELECT COALESCE(a.country, b.country) AS country, a.n, b.s FROM (SELECT country, COUNT(*) AS n FROM customers GROUP BY country) a FULL JOIN (SELECT country, SUM(income) AS s FROM customers GROUP BY country) b ON a.country = b.country;
SELECT age // 10 AS d, COUNT(*) AS n FROM customers GROUP BY age // 10 HAVING age // 10 >= 3 AND COUNT(*) > 2;
SELECT d.department || '/' || d.category AS k, COUNT(*) AS n FROM orders o LEFT JOIN departments d ON o.category = d.category GROUP BY 1;
SELECT CASE WHEN country IN (SELECT country FROM countries WHERE region = 'south') THEN 'south' ELSE 'other' END AS c, COUNT(*) AS n FROM customers GROUP BY c;
SELECT uid IN (SELECT uid FROM orders) AS buys, AVG(age) AS a FROM customers GROUP BY buys;
-- tools that look around
SHOW TABLES;
DESCRIBE customers;
EXPLAIN SELECT COUNT(*) FROM customers;
SELECT 1;
-- refused: of the answers of a derived table only sums and counts can be added up
SELECT AVG(a) FROM (SELECT plan, AVG(age) AS a FROM customers GROUP BY plan) AS t;
-- refused: windows are ordered and partitioned by groups: the order of answers is noisy
SELECT plan, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM customers GROUP BY plan;
-- refused: rows of single people cannot be shown, only aggregates
SELECT * FROM customers LIMIT 10;
-- refused: a dimension cannot come first
SELECT d.department, COUNT(o.uid) AS n FROM departments d LEFT JOIN orders o ON o.category = d.category GROUP BY d.department;
-- refused: SIN of such answers is not possible
SELECT SIN(MEDIAN(age)) FROM customers;
-- refused: answers are joined on groups: noise would decide which numbers are equal
SELECT a.n FROM (SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan) a JOIN (SELECT plan, COUNT(*) AS n FROM customers GROUP BY plan) b ON a.n = b.n;
-- refused: users cannot be distinguished by their id
SELECT uid, age FROM customers WHERE age > 90;
-- refused: MIN is one person's value, which randomised reports hide
SELECT MIN(age), MAX(age) FROM customers;
-- refused: COUNT(DISTINCT …) is not possible: randomised reports do not say whose value is whose
SELECT COUNT(DISTINCT age) FROM customers;
-- refused: the answer would depend on the day it is asked on, and the same text has to mean the same
SELECT COUNT(*) FROM customers WHERE signup > CURRENT_DATE - INTERVAL 30 DAY;
-- refused: FIRST would show a value of one person
SELECT FIRST(plan) FROM customers;
-- refused: ARRAY_AGG would show values of single people
SELECT ARRAY_AGG(age) FROM customers;
-- refused: STRING_AGG would show values of single people
SELECT STRING_AGG(plan, ',') FROM customers;
-- refused: users cannot be distinguished by their id
SELECT uid, COUNT(*) FROM orders GROUP BY uid ORDER BY 2 DESC;
-- refused: table 'customers' is joined with itself
SELECT COUNT(*) FROM customers a JOIN customers b ON a.country = b.country;
-- refused: two attributes of one person cannot be compared: each is randomised on its own tree
SELECT COUNT(*) FROM customers WHERE age = income;
-- refused: KURTOSIS is not a function that can be answered
SELECT KURTOSIS(age) FROM customers;
-- refused: distinct values cannot be counted: reports hide whose value is whose
SELECT APPROX_COUNT_DISTINCT(plan) FROM customers;
-- refused: more than two attributes are multiplied
SELECT SUM(amount * items * age) FROM orders JOIN customers USING (uid);
-- refused: RAND is not known here
SELECT COUNT(*) FROM customers WHERE random() < 0.1;
-- refused: SAMPLE of TABLE is not supported
SELECT COUNT(*) FROM customers TABLESAMPLE 10%;
-- refused: UNION would compare noisy rows
SELECT plan FROM customers UNION SELECT category FROM orders;
-- refused: there is no table 'people'
SELECT COUNT(*) FROM people;
-- refused: there is no attribute 'salary'
SELECT COUNT(*) FROM customers WHERE salary > 10;
-- refused: there is no attribute 'name'
SELECT COUNT(*) FROM customers WHERE name = 'Ann';
-- refused: one SELECT is expected
DELETE FROM customers WHERE age > 90;
-- refused: windows are ordered and partitioned by groups: the order of answers is noisy
SELECT ROW_NUMBER() OVER (ORDER BY age) FROM customers;
-- refused: windows are ordered and partitioned by groups: the order of answers is noisy
SELECT AVG(age) OVER (PARTITION BY plan) FROM customers;
-- refused: rows in which 'plan' is missing are not reported, so nothing can be said of them
SELECT COUNT(*) FROM customers WHERE plan IS NULL;
-- refused: two attributes of one person cannot be compared: each is randomised on its own tree
SELECT COUNT(*) FROM customers WHERE plan > age;
