// Says in words what a passkey's failure would otherwise say on the console only.
(function () {
  const problem = document.getElementById('passkey-problem')
  if (!problem) return
  document.addEventListener('allauth.error', function (event) {
    event.preventDefault()
    const isElsewhere = location.hostname !== problem.dataset.host
    problem.textContent = isElsewhere
      ? problem.dataset.elsewhere
      : window.PublicKeyCredential ? problem.dataset.failed : problem.dataset.missing
    problem.hidden = false
    problem.scrollIntoView({ block: 'nearest' })
  })
})()
