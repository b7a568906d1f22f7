import { dirname, isAbsolute, join, resolve } from 'node:path'
import { installedFolders } from '../process/installation.ts'
import type { IsolationSettings } from '../host/isolation/isolated-plugin.ts'
import type { WatchSettings } from '../host/reload-watch.ts'
import type { RetirementSettings } from '../host/retired-copies.ts'
import type { CrashLimits } from '../host/crash-record.ts'
import type { HttpSettings } from '../http/settings.ts'
import type { OutboundSettings } from '../net/outbound.ts'
import type { ProxySettings } from '../net/proxy.ts'
import type { DaemonFolders } from '../process/folders.ts'
import type { ToolLimits } from '../tools/registry.ts'
import { parseListenAddr } from '../config/listen.ts'
import { namesData, opensFolders } from '../config/live.ts'
import type { Config } from '../config/schema.ts'
import type { Schema } from '../config/shape.ts'

/** Folders with keys, the database and all files. A program that a plugin starts sees none of them. */
function hiddenFolders({ home_dir: home, data_dir: data }: Config): readonly string[] {
  return data === home || data.startsWith(`${home}/`) ? [home] : home.startsWith(`${data}/`) ? [data] : [home, data]
}

/**
 * Folders that programs started by plugins may not read or change. Every file or folder that the configuration names
 * counts as code, because something may be loaded from it: plugins, pages, certificates, programs. The exception is a
 * key whose schema says that it opens folders to programs; `schema` is asked each time, because plugins declare their
 * keys after the start. `files` are those the configuration was read from.
 */
export function daemonFolders(config: Config, files: readonly string[], schema: () => Schema): DaemonFolders {
  const fixed = [
    ...installedFolders().map(({ path, shallow }) => ({ path, what: 'svc itself', shallow })),
    { path: dirname(process.execPath), what: 'Node' },
    ...config.plugins.paths.map((path) => ({ path: resolve(path), what: 'plugins.paths', loads: true })),
    { path: join(config.home_dir, 'plugins'), what: 'plugins of the home', loads: true },
    ...[process.cwd(), ...files.map((file) => dirname(file))].map((path) => ({
      path,
      what: 'the configuration',
      shallow: true,
    })),
  ]
  const named = pathsIn(config).filter(
    ({ key, path }) => !/^(?:home_dir|data_dir)$/.test(key.join('.')) && path !== '/',
  )
  return {
    get hidden() {
      const declared = schema()
      const data = named.filter(({ key }) => namesData(key, declared)).map(({ path }) => path)
      return [...hiddenFolders(config), ...data]
    },
    get code() {
      const declared = schema()
      return [
        ...fixed,
        ...named
          .filter(({ key }) => !opensFolders(key, declared) && !namesData(key, declared))
          .map(({ key, path }) => ({ path, what: key.join('.') })),
      ]
    },
  }
}

/**
 * Keys whose value is a path even when it is relative, which means relative to the folder the daemon was started in.
 */
const pathKey = /(?:^|_)(?:dir|dirs|folder|folders|file|files|path|paths|cert)$/

/** Every path in a configuration, with the key it stands under. */
function pathsIn(
  value: unknown,
  key: readonly string[] = [],
): readonly { readonly key: readonly string[]; readonly path: string }[] {
  if (typeof value === 'string')
    // A path that does not exist yet counts too: whoever may write its parent folder can create it.
    return isAbsolute(value) || (value !== '' && pathKey.test(key.at(-1) ?? '')) ? [{ key, path: resolve(value) }] : []
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([name, inner]) => pathsIn(inner, Array.isArray(value) ? key : [...key, name]))
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
    maxPluginConnections: outbound.plugin_connections,
  }
}

export function toolLimits({ tools }: Config): ToolLimits {
  return { timeoutSecs: tools.timeout_secs, outputChars: tools.output_chars, contentChars: tools.content_chars }
}

/** How long old code of a reloaded plugin goes on. */
export function retirementSettings({ plugins }: Config): RetirementSettings {
  return { retireMs: plugins.retire_ms, maxCopies: plugins.retired_copies, drainMs: plugins.drain_ms }
}

/** Limits of a plugin in a process of its own. */
export function isolationSettings({ plugins }: Config): IsolationSettings {
  return {
    memoryMb: plugins.worker_memory_mb,
    hangMs: plugins.worker_hang_ms,
    maxRestartMs: plugins.worker_restart_ms,
    maxMessageBytes: plugins.worker_message_bytes,
    hookMs: plugins.worker_hook_ms,
  }
}

/** When a reloaded plugin goes back to the code before. */
export function reloadWatchSettings({ plugins }: Config): WatchSettings {
  return { watchMs: plugins.watch_ms, minFailures: plugins.revert_failures, minPercent: plugins.revert_percent }
}

/** Limits of the proxy that one program has. */
export function proxySettings({ outbound }: Config): ProxySettings {
  return {
    maxConnections: outbound.program_connections,
    maxTotalConnections: outbound.total_program_connections,
    idleTimeoutMs: outbound.idle_timeout_ms,
  }
}

/** `daemons`: how many are on the database. */
export function httpSettings(config: Config, daemons = 1): HttpSettings {
  const { http, rate_limit: limits } = config
  const part = (limit: number): number => (limits.shared ? Math.max(1, Math.floor(limit / daemons)) : limit)
  const { host, port } = parseListenAddr(config.listen_addr)
  return {
    host,
    port,
    apiKey: config.api_key,
    allowNoAuth: config.allow_no_auth,
    development: config.development,
    tokensPerMinute: part(limits.tokens_per_minute),
    failedAuthPerMinute: part(limits.failed_auth_per_minute),
    maxBodyBytes: http.max_body_bytes,
    maxHeaderBytes: http.max_header_bytes,
    maxJsonDepth: http.max_json_depth,
    headersTimeoutMs: http.headers_timeout_ms,
    requestTimeoutMs: http.request_timeout_ms,
    sseKeepAliveMs: http.sse_keep_alive_ms,
    streamStatusMs: http.stream_status_ms,
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

/** When a plugin that ended the daemon is set aside. */
export function crashLimits({ plugins }: Config): CrashLimits {
  return { max: plugins.max_crashes, windowMs: plugins.crash_window_secs * 1000 }
}
