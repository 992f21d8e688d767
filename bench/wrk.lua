-- wrk's side of bench.wrk: goes round the requests in the file WRK_REQUESTS (NUL between them). WRK_CONNECT is the
-- address to connect to; the host in the URL is what wrk sends as SNI.

local requests, turn = {}, 0

-- Called before any thread.
function wrk.resolve(_, service)
  wrk.addrs = wrk.lookup(os.getenv("WRK_CONNECT"), service)
end

function init()
  local file = assert(io.open(os.getenv("WRK_REQUESTS"), "rb"))
  for request in file:read("*a"):gmatch("[^%z]+") do requests[#requests + 1] = request end
  file:close()
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  -- WRK_REFUSED: each response is to be one
  local refused = os.getenv("WRK_REFUSED") and summary.requests - errors.status or errors.status
  io.write(string.format(
    '{"requests": %d, "errors": %d, "p50_us": %d, "p99_us": %d, "seconds": %.3f, "bytes": %.0f}\n',
    summary.requests, errors.connect + errors.read + errors.write + refused + errors.timeout,
    latency:percentile(50), latency:percentile(99), summary.duration / 1e6, summary.bytes))
end
