import type { HttpSettings } from '../http/settings.ts'
import type { OutboundSettings } from '../net/outbound.ts'
import { parseListenAddr } from './listen.ts'
import type { Config, PluginSection } from './schema.ts'
import { isTree } from './shape.ts'

/** The registry of model providers calls the addresses the operator put into `[providers]`. */
export const PROVIDERS = 'providers'

/** What the plugin's own schema checks: `[plugins.<name>]`, and the sections at the top of the file that it owns. */
export function section(
  config: Config,
  { name, sections = [] }: { readonly name: string; readonly sections?: readonly PluginSection[] },
): Record<string, unknown> {
  const found: unknown = config.plugins[name]
  const own = isTree(found) ? found : {}
  return { ...own, ...Object.fromEntries(sections.map((key) => [key, config[key]])) }
}

/** Keys, the database and the workspaces of all agents: a program that is started for one of them sees only its own folder of it. */
export function hiddenFolders({ home_dir: home, data_dir: data }: Config): readonly string[] {
  return data === home || data.startsWith(`${home}/`) ? [home] : home.startsWith(`${data}/`) ? [data] : [home, data]
}

export function outboundSettings({ outbound }: Config): OutboundSettings {
  return {
    allow: outbound.allow,
    headersTimeoutMs: outbound.headers_timeout_ms,
    idleTimeoutMs: outbound.idle_timeout_ms,
    maxBytes: outbound.max_bytes,
    maxRedirects: outbound.max_redirects,
    connectTimeoutMs: outbound.connect_timeout_ms,
    totalTimeoutMs: outbound.total_timeout_ms,
  }
}

export function httpSettings(config: Config): HttpSettings {
  const { http } = config
  const { host, port } = parseListenAddr(config.listen_addr)
  return {
    host,
    port,
    apiKey: config.api_key,
    allowNoAuth: config.allow_no_auth,
    development: config.development,
    tokensPerMinute: config.rate_limit.tokens_per_minute,
    failedAuthPerMinute: config.rate_limit.failed_auth_per_minute,
    maxBodyBytes: http.max_body_bytes,
    maxHeaderBytes: http.max_header_bytes,
    maxJsonDepth: http.max_json_depth,
    headersTimeoutMs: http.headers_timeout_ms,
    requestTimeoutMs: http.request_timeout_ms,
    sseKeepAliveMs: http.sse_keep_alive_ms,
    socketBufferBytes: http.socket_buffer_bytes,
    socketFrameBytes: http.socket_frame_bytes,
    socketIdleMs: http.socket_idle_ms,
    socketsPerAddress: http.sockets_per_address,
    allowedHosts: http.allowed_hosts,
    allowedOrigins: http.allowed_origins,
    trustedProxies: http.trusted_proxies,
    ...(http.tls_cert !== undefined && http.tls_key !== undefined
      ? { tls: { cert: http.tls_cert, key: http.tls_key } }
      : http.tls
        ? { tls: true }
        : {}),
    open: http.open,
    public: http.public,
  }
}
