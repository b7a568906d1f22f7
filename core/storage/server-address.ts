const POSTGRES_PORT = 5432

/** Host and port of the server that `database_url` names; `undefined` for a file and for a Unix socket. */
export function serverAddress(databaseUrl: string): { readonly host: string; readonly port: number } | undefined {
  const url = URL.parse(databaseUrl)
  if (!url || !/^postgres(?:ql)?:$/.test(url.protocol)) return undefined
  const host = decodeURIComponent(url.searchParams.get('host') ?? url.hostname)
  if (host === '' || host.startsWith('/')) return undefined
  const port = Number(url.searchParams.get('port') ?? url.port) || POSTGRES_PORT
  return { host: host.replace(/^\[(.*)\]$/, '$1'), port }
}
