-- wrk's side of bench.compare. Arguments: varied|same, host header. WRK_CONNECT is the address to connect to;
-- the host in the URL is what wrk sends as SNI.

local browser = {
  ["User-Agent"] = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
  ["Accept"] = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
  ["Accept-Language"] = "en-US,en;q=0.5",
  ["Accept-Encoding"] = "gzip, deflate, br, zstd",
  ["Referer"] = "https://shop.customer.localhost/products?page=2",
  ["Cookie"] = "session=6f1d0e7a9b3c4d5e8f70112233445566; theme=light",
}

local VARIANTS = 4096
local requests, turn = {}, 0

local function variant(number, host)
  local headers = {}
  for name, value in pairs(browser) do headers[name] = value end
  headers["Host"] = host
  headers["Cookie"] = string.format("session=%032x; theme=light", number * 2654435761)
  headers["Referer"] = "https://shop.customer.localhost/products?page=" .. number
  headers["Accept-Language"] = string.format("en-US,en;q=0.%d", number % 9 + 1)
  return wrk.format("GET", wrk.path .. "?n=" .. number, headers)
end

-- Called before any thread and before the arguments are known.
function wrk.resolve(_, service)
  wrk.addrs = wrk.lookup(os.getenv("WRK_CONNECT"), service)
end

function init(arguments)
  local host = arguments[2]
  for name, value in pairs(browser) do wrk.headers[name] = value end
  wrk.headers["Host"] = host
  if arguments[1] == "varied" then
    for number = 1, VARIANTS do requests[number] = variant(number, host) end
  else
    requests[1] = wrk.format("GET", wrk.path)
  end
end

function request()
  turn = turn % #requests + 1
  return requests[turn]
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('{"requests": %d, "errors": %d, "p50_us": %d, "p99_us": %d, "seconds": %.3f}\n',
    summary.requests, errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99), summary.duration / 1e6))
end
