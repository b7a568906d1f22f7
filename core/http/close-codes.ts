/** Status codes of WebSocket close frames (RFC 6455, 7.4). */
export const normal = 1000
export const away = 1001
