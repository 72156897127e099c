"""Run by Superset's own Python: makes a connection, a dataset and two charts through its API, prints the numbers."""

import json
import sys

METRIC = {"expressionType": "SQL", "sqlExpression": "COUNT(*)", "label": "people"}


def main(address):
    from superset.app import create_app

    client, headers = create_app().test_client(), {}

    def post(path, **body):
        answer = client.post(f"/api/v1/{path}", json=body, headers=headers)
        if answer.status_code not in (200, 201):
            sys.exit(f"{path}: {answer.status_code} {answer.get_data(as_text=True)[:2000]}")
        return answer.get_json()

    admin = {"username": "admin", "password": "admin", "provider": "db", "refresh": True}
    headers["Authorization"] = f"Bearer {post('security/login', **admin)['access_token']}"
    database = post("database/", database_name="shop", sqlalchemy_uri=address)["id"]
    dataset = post("dataset/", database=database, schema="shop", table_name="users")["id"]
    shown = {}
    for name, kind in (("bar", "echarts_timeseries_bar"), ("table", "table")):
        params = json.dumps({"viz_type": kind, "groupby": ["sex"], "metrics": [METRIC]})
        post("chart/", slice_name=name, viz_type=kind, datasource_id=dataset, datasource_type="table", params=params)
        asked = {"columns": ["sex"], "metrics": [METRIC], "row_limit": 100, "orderby": [["people", False]]}
        source = {"id": dataset, "type": "table"}
        answer = post("chart/data", datasource=source, queries=[asked], result_format="json", result_type="full")
        shown[name] = answer["result"][0]["data"]
    columns = client.get(f"/api/v1/dataset/{dataset}", headers=headers).get_json()["result"]["columns"]
    shown["columns"] = [column["column_name"] for column in columns]
    print("NUMBERS " + json.dumps(shown))


if __name__ == "__main__":
    main(sys.argv[1])
