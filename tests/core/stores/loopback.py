"""A small Qdrant server for tests: the part of its REST interface that our stores use, over Qdrant's own engine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

import qdrant_edge as edge


class Loopback:
    """Listens on 127.0.0.1 at a port of its own, until the `with` ends. `status`: what it answers to everything."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.shards: dict[str, edge.EdgeShard] = {}
        self.indexes: dict[str, list[str]] = {}
        self.asked: list[str] = []
        self.status: int | None = None
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"desk": self}))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Loopback:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        for shard in self.shards.values():
            shard.close()

    def answer(self, method: str, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
        with self._lock:
            _, _, name, *rest = path.split("/")
            self.asked.append(f"{method} {'/'.join(rest)}")
            if self.status is not None:
                return self.status, None
            if rest == ["exists"]:
                return 200, {"exists": name in self.shards}
            if not rest and method == "PUT":
                return 200, self._create(name, body)
            if name not in self.shards:
                return 404, None
            return 200, ROUTES[method, "/".join(rest)](self, name, body)

    def _create(self, name: str, body: Mapping[str, Any]) -> bool:
        vectors = body["vectors"]
        config = edge.EdgeConfig(
            vectors=edge.EdgeVectorParams(size=vectors["size"], distance=getattr(edge.Distance, vectors["distance"]))
        )
        path = self.folder / str(len(self.shards))
        path.mkdir()
        self.shards[name] = edge.EdgeShard.create(str(path), config)
        return True

    def index(self, name: str, body: Mapping[str, Any]) -> Any:
        schema = body["field_schema"]
        params = INDEXES.get(schema if isinstance(schema, str) else schema["type"], edge.KeywordIndexParams)()
        self.shards[name].update(edge.UpdateOperation.create_field_index(body["field_name"], params))
        self.indexes.setdefault(name, []).append(json.dumps({body["field_name"]: schema}))
        return DONE

    def upsert(self, name: str, body: Mapping[str, Any]) -> Any:
        points = [edge.Point(one["id"], one["vector"], one["payload"]) for one in body["points"]]
        self.shards[name].update(edge.UpdateOperation.upsert_points(points))
        return DONE

    def delete(self, name: str, body: Mapping[str, Any]) -> Any:
        chosen = _filter(body.get("filter"))
        by_id = edge.UpdateOperation.delete_points
        every = edge.UpdateOperation.delete_points_by_filter
        self.shards[name].update(by_id(body["points"]) if chosen is None else every(chosen))
        return DONE

    def set_payload(self, name: str, body: Mapping[str, Any]) -> Any:
        self.shards[name].update(edge.UpdateOperation.set_payload(body["points"], body["payload"]))
        return DONE

    def query(self, name: str, body: Mapping[str, Any]) -> Any:
        found = self.shards[name].query(
            edge.QueryRequest(
                limit=body["limit"],
                query=edge.Query.Nearest(body["query"]["nearest"]),
                filter=_filter(body["filter"]),
                with_vector=body["with_vector"],
                with_payload=body["with_payload"],
                score_threshold=body.get("score_threshold"),
            )
        )
        keys = ("id", "version", "score", "vector", "payload")
        return {"points": [_plain(one, keys) for one in found]}

    def scroll(self, name: str, body: Mapping[str, Any]) -> Any:
        order = body.get("order_by")
        found, offset = self.shards[name].scroll(
            edge.ScrollRequest(
                offset=body.get("offset"),
                limit=body["limit"],
                filter=_filter(body.get("filter")),
                with_payload=body["with_payload"],
                order_by=None if order is None else _order(order),
            )
        )
        return {"points": [_plain(one, ("id", "payload")) for one in found], "next_page_offset": offset}

    def retrieve(self, name: str, body: Mapping[str, Any]) -> Any:
        found = self.shards[name].retrieve(body["ids"], with_payload=body["with_payload"], with_vector=False)
        return [_plain(one, ("id", "payload")) for one in found]

    def count(self, name: str, body: Mapping[str, Any]) -> Any:
        return {"count": self.shards[name].count(edge.CountRequest(exact=True, filter=_filter(body.get("filter"))))}

    def facet(self, name: str, body: Mapping[str, Any]) -> Any:
        found = self.shards[name].facet(
            edge.FacetRequest(body["key"], limit=body["limit"], exact=True, filter=_filter(body.get("filter")))
        )
        return {"hits": [{"value": hit.value, "count": hit.count} for hit in found.hits]}


INDEXES: dict[str, Callable[[], Any]] = {
    "float": edge.FloatIndexParams,
    "integer": edge.IntegerIndexParams,
    "datetime": edge.DatetimeIndexParams,
}
CLAUSES = ("must", "should", "must_not")
DONE = {"operation_id": 0, "status": "completed"}
ROUTES: dict[tuple[str, str], Callable[[Loopback, str, Mapping[str, Any]], Any]] = {
    ("PUT", "index"): Loopback.index,
    ("PUT", "points"): Loopback.upsert,
    ("POST", "points"): Loopback.retrieve,
    ("POST", "points/delete"): Loopback.delete,
    ("POST", "points/payload"): Loopback.set_payload,
    ("POST", "points/query"): Loopback.query,
    ("POST", "points/scroll"): Loopback.scroll,
    ("POST", "points/count"): Loopback.count,
    ("POST", "facet"): Loopback.facet,
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    desk: Loopback

    def _do(self) -> None:
        size = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(size)) if size else {}
        status, result = self.desk.answer(self.command, urlsplit(self.path).path, body)
        data = json.dumps({"result": result, "status": "ok", "time": 0.0}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = _do

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""


def _filter(given: Mapping[str, Any] | None) -> edge.Filter | None:
    if given is None:
        return None
    must, should, must_not = ([_condition(one) for one in given.get(name) or ()] or None for name in CLAUSES)
    return edge.Filter(must=must, should=should, must_not=must_not)


def _order(given: Mapping[str, Any]) -> edge.OrderBy:
    direction = edge.Direction.Desc if given.get("direction") == "desc" else edge.Direction.Asc
    return edge.OrderBy(given["key"], direction, given.get("start_from"))


def _condition(given: Mapping[str, Any]) -> Any:
    if "has_id" in given:
        return edge.HasIdCondition(set(given["has_id"]))
    if "key" not in given:
        return _filter(given)
    if match := given.get("match"):
        wanted = edge.MatchAny(match["any"]) if "any" in match else edge.MatchValue(match["value"])
        return edge.FieldCondition(given["key"], match=wanted)
    bounds = {name: value for name, value in given["range"].items() if value is not None}
    return edge.FieldCondition(given["key"], range=edge.RangeFloat(**bounds))


def _plain(point: Any, keys: tuple[str, ...]) -> dict[str, Any]:
    values = {key: getattr(point, key) for key in keys}
    return {**values, "id": str(values["id"])}
