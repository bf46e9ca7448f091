// Applies the stored choice of light or dark before the page is drawn.
(function () {
  function chosen() {
    try { return JSON.parse(localStorage.getItem('adminTheme')) || 'auto' } catch { return 'auto' }
  }
  function isDark() {
    const theme = chosen()
    return theme === 'dark' || (theme === 'auto' && matchMedia('(prefers-color-scheme: dark)').matches)
  }
  function draw() {
    document.documentElement.classList.toggle('dark', isDark())
  }
  draw()
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw)
  document.addEventListener('DOMContentLoaded', function () {
    document.getElementById('theme-switch').addEventListener('click', function () {
      localStorage.setItem('adminTheme', JSON.stringify(isDark() ? 'light' : 'dark'))
      draw()
    })
  })
})()
