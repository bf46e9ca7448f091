REPORT z_token_client.
* Fetches an access token and asks which taxpayer it represents. SAP NetWeaver 7.50 or newer.
* For HTTPS, import the certificate of the authority that issued the server's one in STRUST.
* Store tokens in your own table, for each taxpayer. A job fetches the next one at a random moment
* between half and nine tenths of expires_in (X-Renew-At names one); if it gets 429, 503 or no
* answer, go on with the old token until that ends, and try again.
PARAMETERS: p_id     TYPE string LOWER CASE OBLIGATORY,
            p_secret TYPE string LOWER CASE OBLIGATORY,
            p_behalf TYPE string.  " only to act for another taxpayer: TIN or TIN:ROB

CONSTANTS auth_url TYPE string VALUE 'http://127.0.0.1:8000'.

TYPES: BEGIN OF ty_answer,
         access_token      TYPE string,
         expires_in        TYPE i,
         error             TYPE string,
         error_description TYPE string,
       END OF ty_answer.

START-OF-SELECTION.
  DATA(answer) = VALUE ty_answer( ).
  DO 5 TIMES.
    cl_http_client=>create_by_url(
      EXPORTING url = |{ auth_url }/connect/token|
      IMPORTING client = DATA(http)
      EXCEPTIONS OTHERS = 1 ).
    IF sy-subrc <> 0.
      MESSAGE 'The address cannot be used: see transaction SMICM.' TYPE 'E'.
    ENDIF.
    http->request->set_method( 'POST' ).
    http->request->set_content_type( 'application/x-www-form-urlencoded' ).
    " On this one request. An empty header is refused.
    IF p_behalf IS NOT INITIAL.
      http->request->set_header_field( name = 'onbehalfof' value = p_behalf ).
    ENDIF.
    http->request->set_cdata( |grant_type=client_credentials| &&
      |&client_id={ cl_http_utility=>escape_url( p_id ) }| &&
      |&client_secret={ cl_http_utility=>escape_url( p_secret ) }| ).
    http->send( EXCEPTIONS OTHERS = 1 ).
    IF sy-subrc = 0.
      http->receive( EXCEPTIONS OTHERS = 1 ).
    ENDIF.
    IF sy-subrc <> 0.
      http->get_last_error( IMPORTING message = answer-error_description ).
      DATA(status) = 0.
    ELSE.
      http->response->get_status( IMPORTING code = status ).
      CLEAR answer.
      /ui2/cl_json=>deserialize( EXPORTING json = http->response->get_cdata( )
                                 CHANGING data = answer ).
    ENDIF.
    DATA(pause) = http->response->get_header_field( 'Retry-After' ).
    http->close( ).
    IF status <> 0 AND status <> 429 AND status <> 503.
      EXIT.
    ENDIF.
    " Longer after each failure, but not the same for all.
    DATA(percent) = cl_abap_random_int=>create( seed = cl_abap_random=>seed( ) min = 100 max = 150 )->get_next( ).
    WAIT UP TO COND i( WHEN pause CO ' 0123456789' AND pause IS NOT INITIAL THEN pause ELSE 1 )
               * ipow( base = 2 exp = sy-index - 1 ) * percent / 100 SECONDS.
  ENDDO.
  IF status <> 200.
    " It says what to do, and ends with a reference for support.
    WRITE / answer-error_description.
    RETURN.
  ENDIF.

  cl_http_client=>create_by_url(
    EXPORTING url = |{ auth_url }/api/v1/me|
    IMPORTING client = http
    EXCEPTIONS OTHERS = 1 ).
  http->request->set_header_field( name  = 'Authorization'
                                   value = |Bearer { answer-access_token }| ).
  http->send( EXCEPTIONS OTHERS = 1 ).
  http->receive( EXCEPTIONS OTHERS = 1 ).
  WRITE / http->response->get_cdata( ).
  http->close( ).
